#include "cli/program_memory.h"

namespace cria::cli {

ProgramKind ThisProgramKind() {
#if defined(__x86_64__)
  return ProgramKind::kX86;
#elif defined(__aarch64__)
  return ProgramKind::kArm64;
#else
  return ProgramKind::kArm;
#endif
}

platform::MemoryUsage ProgramMemory(ProgramKind kind, ProgramName name) {
  constexpr uint64_t kStep = uint64_t{64} << 10;
  const auto usage = [](uint64_t private_steps, uint64_t mapped_steps, uint64_t virtual_steps) {
    platform::MemoryUsage memory;
    memory.private_bytes = private_steps * kStep;
    memory.file_mapped_bytes = mapped_steps * kStep;
    memory.virtual_bytes = virtual_steps * kStep;
    return memory;
  };
  const bool serves = name == ProgramName::kServe;
  switch (kind) {
    case ProgramKind::kX86:
      // The server has libmicrohttpd and the libraries that it is linked with, of which GnuTLS is
      // the largest.
      return serves ? usage(12, 112, 308) : usage(7, 83, 192);
    case ProgramKind::kArm64:
      return serves ? usage(13, 93, 360) : usage(8, 69, 224);
    case ProgramKind::kArm:
      return serves ? usage(10, 78, 308) : usage(6, 58, 192);
  }
  return {};
}

}  // namespace cria::cli
