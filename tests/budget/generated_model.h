#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria::budget {

// A model of random weights, which cria-make-checkpoint and cria-convert make; runs cria with it.
class GeneratedModel {
 public:
  // `shape` and `conversion` are arguments of cria-make-checkpoint and cria-convert.
  GeneratedModel(std::vector<std::string> shape, std::vector<std::string> conversion) {
    const std::string checkpoint = folder_ / "checkpoint";
    shape.insert(shape.begin(), {support::kMakeCheckpointProgram, "-o", checkpoint});
    Succeed(shape);
    conversion.insert(conversion.begin(),
                      {support::kModelConverter, "--fast", checkpoint, "-o", path()});
    Succeed(conversion);
    std::filesystem::remove_all(checkpoint);
  }

  std::string path() const { return folder_ / "model.cria"; }

  // The arguments of `cria COMMAND -m MODEL`, with packed weights kept beside the model.
  std::vector<std::string> Arguments(const std::string& command,
                                     std::vector<std::string> more) const {
    more.insert(more.begin(), {support::kCriaProgram, command, "-m", path(), "--pack-cache",
                               (folder_ / "packed").string()});
    return more;
  }

  support::RunResult Run(const std::string& command, std::vector<std::string> more,
                         const support::RunOptions& options = {}) const {
    return support::RunProgram(Arguments(command, std::move(more)), options);
  }

  // The output of a command with --json.
  nlohmann::json Json(const std::string& command, std::vector<std::string> more) const {
    more.push_back("--json");
    return nlohmann::json::parse(Succeed(Arguments(command, std::move(more))));
  }

 private:
  static std::string Succeed(const std::vector<std::string>& arguments) {
    const support::RunResult result = support::RunProgram(arguments);
    if (result.exit_code != 0) throw std::runtime_error(arguments[0] + ": " + result.error);
    return result.output;
  }

  support::TemporaryDirectory folder_;
};

}  // namespace cria::budget
