#include "cli/plan/program_memory.h"

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
  // The server has libmicrohttpd and the libraries that it is linked with, of which GnuTLS is the
  // largest; cria-mpi has these, too, and those of MPI, before it starts. The figures of cria-mpi
  // on Arm were not measured, but are in proportion to those of x86-64 as the server's are.
  switch (kind) {
    case ProgramKind::kX86:
      switch (name) {
        case ProgramName::kCria:
          return usage(7, 83, 192);
        case ProgramName::kServe:
          return usage(12, 112, 308);
        case ProgramName::kMpi:
          return usage(27, 176, 810);
      }
      break;
    case ProgramKind::kArm64:
      switch (name) {
        case ProgramName::kCria:
          return usage(8, 69, 224);
        case ProgramName::kServe:
          return usage(13, 93, 360);
        case ProgramName::kMpi:
          return usage(31, 146, 945);
      }
      break;
    case ProgramKind::kArm:
      switch (name) {
        case ProgramName::kCria:
          return usage(6, 58, 192);
        case ProgramName::kServe:
          return usage(10, 78, 308);
        case ProgramName::kMpi:
          return usage(23, 123, 810);
      }
      break;
  }
  return {};
}

}  // namespace cria::cli
