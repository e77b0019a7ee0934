#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_directory.h"

namespace cria::tests {

// The demo model in int8, which answers readably; converted once for each process.
inline const std::string& DemoModel() {
  static const support::TemporaryDirectory folder;
  static const std::string path = [] {
    const std::string model = folder.path() / "demo.cria";
    const support::RunResult converted =
        support::RunProgram({support::kModelConverter, "--fast", support::kDemoCheckpoint, "-o",
                             model, "--weights", "int8", "--no-verify"});
    if (converted.exit_code != 0) throw std::runtime_error(converted.error);
    return model;
  }();
  return path;
}

// Options with which answers do not end by themselves: they forbid the demo model's stop tokens.
inline std::vector<std::string> EndlessAnswers() {
  const auto config = nlohmann::json::parse(
      support::ReadFile(std::string(support::kDemoCheckpoint) + "/generation_config.json"));
  std::vector<std::string> options;
  for (const int id : config.at("eos_token_id")) {
    options.insert(options.end(), {"--logit-bias", std::to_string(id) + "-inf"});
  }
  return options;
}

}  // namespace cria::tests
