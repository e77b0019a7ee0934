#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cria::platform {

// The lowest memory limit of the control group in `root`/proc/self/cgroup and of the groups above
// it, where `root`/proc/self/mountinfo says they are mounted. `root` is a prefix of all paths:
// empty for the system's own files; tests pass others. Both versions of control groups are read,
// also together. What is missing, not mounted or not understood sets no limit.
std::optional<uint64_t> CgroupMemoryLimit(const std::string& root);

// The lowest processor quota of the same groups, in processors: 1.5 if a group's threads together
// may run for 150 ms of every 100 ms.
std::optional<double> CgroupProcessorQuota(const std::string& root);

}  // namespace cria::platform
