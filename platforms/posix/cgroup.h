#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cria::platform {

// The least memory limit of the control group that `root`/proc/self/cgroup names and of the groups
// above it, looked up below `root` where `root`/proc/self/mountinfo says they are mounted. An empty
// `root` is the system's own; tests give others. Both versions of control groups count, also side
// by side. What is missing, not mounted or not understood sets no limit.
std::optional<uint64_t> CgroupMemoryLimit(const std::string& root);

}  // namespace cria::platform
