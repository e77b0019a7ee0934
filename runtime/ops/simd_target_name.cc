#include "ops/simd_target_name.h"

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

HWY_EXPORT(SimdTargetName);

std::string_view SimdTargetName() { return HWY_DYNAMIC_DISPATCH(SimdTargetName)(); }

}  // namespace cria::ops
#endif  // HWY_ONCE
