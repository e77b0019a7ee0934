#include "ops/simd_target_name.h"

#include "core/platform.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/simd_target_name.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

const char* SimdTargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {
namespace {

bool arm_dot_products_allowed = true;

}  // namespace

HWY_EXPORT(SimdTargetName);

std::string_view SimdTargetName() {
  return UsesArmDotProducts() ? "NEON_DOTPROD" : HWY_DYNAMIC_DISPATCH(SimdTargetName)();
}

bool UsesArmDotProducts() {
#if HWY_ARCH_ARM_A64
  static const bool has_them = platform::HasArmDotProducts();
  return has_them && arm_dot_products_allowed;
#else
  return false;
#endif
}

void AllowArmDotProducts(bool allowed) { arm_dot_products_allowed = allowed; }

}  // namespace cria::ops
#endif  // HWY_ONCE
