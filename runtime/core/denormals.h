#pragma once

#include <cstdint>

namespace cria {

// While an object of this class exists, its thread treats subnormal numbers as zeros, if the
// processor can do that. Such numbers cost hundreds of cycles on some cores, and no model needs
// them.
class DenormalsDisabled {
 public:
  DenormalsDisabled() : saved_(Read()) { Write(saved_ | kFlags); }
  DenormalsDisabled(const DenormalsDisabled&) = delete;
  DenormalsDisabled& operator=(const DenormalsDisabled&) = delete;
  ~DenormalsDisabled() { Write(saved_); }

 private:
#if defined(__x86_64__)
  using Register = uint32_t;
  static constexpr Register kFlags = 0x8040;  // MXCSR: flush to zero, denormals are zero.
  static Register Read() { return __builtin_ia32_stmxcsr(); }
  static void Write(Register value) { __builtin_ia32_ldmxcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kFlags = 0x1080000;  // FPCR: flush to zero, also of half precision.
  static Register Read() {
    Register value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void Write(Register value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#elif defined(__arm__)
  using Register = uint32_t;
  static constexpr Register kFlags = 0x1000000;  // FPSCR: flush to zero.
  static Register Read() {
    Register value;
    asm volatile("vmrs %0, fpscr" : "=r"(value));
    return value;
  }
  static void Write(Register value) { asm volatile("vmsr fpscr, %0" : : "r"(value)); }
#else
  using Register = uint32_t;
  static constexpr Register kFlags = 0;
  static Register Read() { return 0; }
  static void Write(Register /*value*/) {}
#endif

  Register saved_;
};

}  // namespace cria
