#pragma once

#include <cstdint>

#include "core/platform.h"

namespace cria::cli {

enum class ProgramKind : uint8_t { kX86, kArm64, kArm };

// The kind of `cria` that is installed beside this program.
ProgramKind ThisProgramKind();

enum class ProgramName : uint8_t { kCria, kServe, kMpi };

// What the program of this kind uses before it loads a model, as a plan needs it. These figures are
// fixed, so that a plan is the same each time: what a process measures differs by some pages, and
// cria-convert has other libraries. Those of x86-64 were measured with Debian 13's libraries (a
// test compares), those of Arm are computed from the files of the same libraries, in proportion.
platform::MemoryUsage ProgramMemory(ProgramKind kind, ProgramName name = ProgramName::kCria);

}  // namespace cria::cli
