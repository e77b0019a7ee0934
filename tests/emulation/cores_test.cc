// Checks that the emulated cores are what they are called, so that the tests on each of them run
// different kernels, and prints what each core has. xnnpack_kernels_test.py names the XNNPACK
// kernels that each one runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "core/platform.h"
#include "ops/simd_target_name.h"
#include "xnn/known_layouts.h"
#include "xnn/packing.h"

namespace cria {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Matcher;
using testing::Not;

struct Core {
  std::string_view name;
  Matcher<std::string> instruction_sets;
  Matcher<std::string> simd_target;
};

const Core kCores[] = {
    {"cortex-a7", AllOf(HasSubstr("neon"), Not(HasSubstr("dotprod"))), "NEON_WITHOUT_AES"},
    {"cortex-a53", AllOf(HasSubstr("neon"), Not(HasSubstr("dotprod"))), "NEON_WITHOUT_AES"},
    {"cortex-a72", AllOf(HasSubstr("neon"), Not(HasSubstr("dotprod"))), "NEON_WITHOUT_AES"},
    {"cortex-a76", AllOf(HasSubstr("dotprod"), Not(HasSubstr("i8mm"))), "NEON_DOTPROD"},
    {"max", AllOf(HasSubstr("i8mm"), HasSubstr("bf16"), HasSubstr("sve2")), "NEON_DOTPROD"},
};

TEST(EmulatedCore, IsWhatItIsCalled) {
  const char* const name = std::getenv("QEMU_CPU");
  ASSERT_NE(name, nullptr) << "the tests are to run with QEMU_CPU set";
  const std::string instruction_sets = platform::InstructionSets();
  const std::string simd_target(ops::SimdTargetName());
  const auto layout = xnn::FingerprintSchemes();
  ASSERT_TRUE(layout) << layout.error().message();
  std::printf("report: %-10s  has %-39s  Highway %-16s  XNNPACK layout %016llx\n", name,
              instruction_sets.c_str(), simd_target.c_str(),
              static_cast<unsigned long long>(xnn::LayoutFingerprint(*layout)));
  const auto* core = std::ranges::find(kCores, name, &Core::name);
  ASSERT_NE(core, std::end(kCores)) << name << " is missing in the table of this test";
  EXPECT_THAT(instruction_sets, core->instruction_sets);
  EXPECT_THAT(simd_target, core->simd_target);
  if (const xnn::KnownLayout* known = xnn::FindKnownLayout(name)) {
    EXPECT_THAT(*layout, testing::ElementsAreArray(known->fingerprints)) << name;
  }
}

}  // namespace
}  // namespace cria
