// Part of every program of tests: prints which tests were skipped, and why, also where GoogleTest
// prints only their number. ./dev test compares these lines with tests/allowed_skips.txt.

#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace {

std::string ReasonOf(const testing::TestResult& result) {
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (!part.skipped()) continue;
    std::string reason = part.message();
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return reason;
  }
  return "";
}

class SkippedTests : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Skipped()) return;
    std::printf("skipped: %s.%s.%s: %s\n", program_invocation_short_name, test.test_suite_name(),
                test.name(), ReasonOf(*test.result()).c_str());
  }
};

[[maybe_unused]] const bool is_listening = [] {
  // GoogleTest deletes it.
  testing::UnitTest::GetInstance()->listeners().Append(new SkippedTests);
  return true;
}();

}  // namespace
