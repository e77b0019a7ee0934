#include <sys/resource.h>

#include "core/platform.h"
#include "posix/cgroup.h"

namespace cria::platform {

MemoryLimits ReadMemoryLimits() {
  MemoryLimits limits;
  limits.cgroup_bytes = CgroupMemoryLimit("");
  rlimit address_space = {};
  if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    limits.address_space_bytes = address_space.rlim_cur;
  }
  return limits;
}

}  // namespace cria::platform
