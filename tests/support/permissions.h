#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace cria::support {

// While an object exists, permissions of files hold for this thread even if it is the superuser's.
class PermissionsHold {
 public:
  PermissionsHold() {
    syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct now[2] = {before_[0], before_[1]};
    now[0].effective &= ~(Bit(CAP_DAC_OVERRIDE) | Bit(CAP_DAC_READ_SEARCH));
    syscall(SYS_capset, &header_, now);
  }
  ~PermissionsHold() { syscall(SYS_capset, &header_, before_); }
  PermissionsHold(const PermissionsHold&) = delete;
  PermissionsHold& operator=(const PermissionsHold&) = delete;

 private:
  static uint32_t Bit(unsigned capability) { return uint32_t{1} << capability; }

  __user_cap_header_struct header_ = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct before_[2] = {};
};

// From the next exec on, they hold for this process and all that it starts.
inline void LetPermissionsHoldAfterExec() {
  prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
  prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH);
}

}  // namespace cria::support
