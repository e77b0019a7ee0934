#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "model/tensor_table.h"
#include "support/emulation.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/unwrap.h"

namespace cria::support {

// `options` as flags of cria-convert. Only these options: schemes, block size and overwriting.
inline std::vector<std::string> ConvertFlags(const ConvertOptions& options) {
  const auto name = [](Scheme scheme) {
    switch (scheme) {
      case Scheme::kF32:
        return "f32";
      case Scheme::kQc8w:
        return "int8";
      case Scheme::kQb4w:
        return "int4";
      default:
        break;
    }
    return "";
  };
  std::vector<std::string> flags = {"--no-verify", "--block-size",
                                    std::to_string(options.block_size)};
  if (options.keeps_codes) {
    flags.insert(flags.end(), {"--weights", "keep"});
  } else {
    flags.insert(flags.end(), {"--fast", "--weights", name(options.weights)});
  }
  if (options.embedding) flags.insert(flags.end(), {"--embedding", name(*options.embedding)});
  if (options.head) flags.insert(flags.end(), {"--head", name(*options.head)});
  if (options.overwrite) flags.push_back("--overwrite");
  return flags;
}

// Converts a checkpoint for a test of something else; `options` are those of ConvertFlags, and a
// chat template. Throws std::runtime_error if it fails. Under emulation, the host's cria-convert
// writes the file, which is the same (emulation_same_model_file_test), because converting would
// take longer than the test.
inline void ConvertModel(const std::filesystem::path& checkpoint,
                         const std::filesystem::path& output, const ConvertOptions& options) {
  // cria-convert makes int8 of what has no codes to keep.
  const bool has_flags = !options.keeps_codes || options.weights == Scheme::kQc8w;
  if (!IsEmulated() || !has_flags) {
    Unwrap(Convert(checkpoint, output, options));
    return;
  }
  std::vector<std::string> command = {support::kModelConverter, checkpoint, "-o", output};
  for (const std::string& flag : ConvertFlags(options)) command.push_back(flag);
  if (options.chat_template) {
    const std::filesystem::path chat_template = output.string() + ".jinja";
    WriteFile(chat_template, options.chat_template->text);
    command.insert(command.end(), {"--chat-template", chat_template});
  }
  const RunResult result = RunProgram(command);
  if (result.exit_code != 0) throw std::runtime_error(result.error);
}

}  // namespace cria::support
