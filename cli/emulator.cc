#include "cli/emulator.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/format.h"

namespace cria::cli {
namespace {

constexpr char kProgramVariable[] = "CRIA_AARCH64_PROGRAM";
// Tells the emulated program that it is emulated, so that it does not start an emulator again.
constexpr char kEmulatedVariable[] = "CRIA_EMULATED_FOR";
constexpr char kProcessorVariable[] = "QEMU_CPU";
constexpr char kEmulator[] = "qemu-aarch64";
constexpr char kLibrariesVariable[] = "QEMU_LD_PREFIX";
constexpr char kLoader[] = "/lib/ld-linux-aarch64.so.1";

bool IsForAarch64(const char* program) {
  // The beginning of an ELF file, with the field for the processor; 183 is aarch64.
  char head[20] = {};
  std::ifstream(program, std::ios::binary).read(head, sizeof(head));
  return std::memcmp(head, "\177ELF", 4) == 0 && head[18] == static_cast<char>(183) &&
         head[19] == 0;
}

}  // namespace

Status RunEmulated(const std::string& processor, const std::vector<std::string>& arguments) {
  if (std::getenv(kEmulatedVariable) != nullptr) {
    return Fail(ErrorCode::kUnsupported,
                Format("this XNNPACK packs for {} otherwise than the one that is known; pack "
                       "on the board itself",
                       processor));
  }
  const char* const program = std::getenv(kProgramVariable);
  if (program == nullptr || access(program, X_OK) != 0) {
    return Fail(ErrorCode::kNotFound,
                Format("this processor cannot pack for {}, and there is no program for "
                       "aarch64 to emulate: run `./dev build aarch64` and then `./dev cria "
                       "pack`, name one in {}, or pack on the board itself",
                       processor, kProgramVariable));
  }
  if (!IsForAarch64(program)) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}, which {} names, is not a program for aarch64: `./dev build aarch64` "
                       "makes one, and `./dev cria pack` finds it",
                       program, kProgramVariable));
  }
  const char* const libraries = std::getenv(kLibrariesVariable);
  if (const std::string loader = std::string(libraries == nullptr ? "" : libraries) + kLoader;
      access(loader.c_str(), R_OK) != 0) {
    return Fail(ErrorCode::kNotFound,
                Format("there is no {} for {} to run {} with: run `./dev build aarch64`, or name "
                       "the folder of the sysroot in {}",
                       loader, kEmulator, program, kLibrariesVariable));
  }
  std::vector<std::string> words = {kEmulator, program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv(kProcessorVariable, processor.c_str(), /*overwrite=*/1);
  setenv(kEmulatedVariable, processor.c_str(), /*overwrite=*/1);
  execvp(kEmulator, pointers.data());
  return Fail(ErrorCode::kNotFound,
              Format("cannot start {}, which is needed here to pack for {}: {}; install it with "
                     "`apt-get install qemu-user`, or pack on the board itself",
                     kEmulator, processor, std::strerror(errno)));
}

}  // namespace cria::cli
