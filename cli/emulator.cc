#include "cli/emulator.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <format>

namespace cria::cli {
namespace {

constexpr char kProgramVariable[] = "CRIA_AARCH64_PROGRAM";
constexpr char kProcessorVariable[] = "QEMU_CPU";
constexpr char kEmulator[] = "qemu-aarch64";

}  // namespace

Status RunEmulated(const std::string& processor, const std::vector<std::string>& arguments) {
  if (const char* emulated = std::getenv(kProcessorVariable);
      emulated != nullptr && emulated == processor) {
    return Fail(ErrorCode::kUnsupported,
                std::format("this XNNPACK packs for {} otherwise than the one that is known; pack "
                            "on the board itself",
                            processor));
  }
  const char* const program = std::getenv(kProgramVariable);
  if (program == nullptr || access(program, X_OK) != 0) {
    return Fail(ErrorCode::kNotFound,
                std::format("this processor cannot pack for {}, and there is no program for "
                            "aarch64 to emulate: run `./dev build aarch64` and then `./dev cria "
                            "pack`, name one in {}, or pack on the board itself",
                            processor, kProgramVariable));
  }
  std::vector<std::string> words = {kEmulator, program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv(kProcessorVariable, processor.c_str(), /*overwrite=*/1);
  execvp(kEmulator, pointers.data());
  return Fail(ErrorCode::kNotFound,
              std::format("cannot start {}, which packing for {} takes here: {}; install it with "
                          "`apt-get install qemu-user`, or pack on the board itself",
                          kEmulator, processor, std::strerror(errno)));
}

}  // namespace cria::cli
