// Limits that the system sets: a model that fits them runs, and one that does not is refused with a
// sentence instead of being killed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "budget/generated_model.h"
#include "core/format.h"
#include "support/mebibyte.h"
#include "support/sanitizers.h"

namespace cria {
namespace {

using budget::GeneratedModel;
using support::kMebibyte;
using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::HasSubstr;
using testing::StartsWith;

// Weights of 25 MB and a KV cache of 67: a program's constants are little beside them.
class MemoryLimit : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = new GeneratedModel(
        {"--shape", "stories15m", "--num-hidden-layers", "4", "--num-attention-heads", "16",
         "--num-key-value-heads", "16", "--head-dim", "128", "--max-position-embeddings", "1024"},
        {"--weights", "int8"});
    // Packs the weights.
    plan_ = model_->Json("bench", WithContext({"--memory"}, "64"))["plan"];
    plan_ = model_->Json("plan", WithContext({}, kContext));
    ASSERT_GT(plan_["private_bytes"], 60 << 20);
  }
  static void TearDownTestSuite() { delete model_; }
  void SetUp() override {
    if (support::kHeapIsSanitized) GTEST_SKIP() << "the plan does not contain a sanitizer's memory";
  }

  static std::vector<std::string> WithContext(std::vector<std::string> more,
                                              const std::string& context) {
    more.insert(more.begin(), {"-c", context, "--kv", "f32", "-t", "2"});
    return more;
  }

  static std::vector<std::string> RunArguments(std::vector<std::string> more = {}) {
    const std::vector<std::string> text = {"-p",           "Once upon a time", "-n", "8",
                                           "--ignore-eos", "--temp",           "0"};
    more.insert(more.begin(), text.begin(), text.end());
    return model_->Arguments("run", WithContext(more, kContext));
  }

  // Percent of what was planned.
  static uint64_t Planned(const char* figure, uint64_t percent) {
    return plan_[figure].get<uint64_t>() * percent / 100;
  }

  static void ExpectRefused(const RunResult& result, const std::string& why) {
    EXPECT_EQ(result.signal, 0);
    EXPECT_EQ(result.exit_code, 1) << result.error;
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.error, StartsWith("cria: error: the model needs "));
    EXPECT_THAT(result.error, HasSubstr(why));
    EXPECT_THAT(result.error, HasSubstr("what would fit: -c "));
  }

  static void ExpectRan(const RunResult& result) {
    EXPECT_EQ(result.signal, 0);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, StartsWith("Once upon a time"));
  }

  static constexpr const char* kContext = "1024";
  static GeneratedModel* model_;
  static nlohmann::json plan_;
};

GeneratedModel* MemoryLimit::model_ = nullptr;
nlohmann::json MemoryLimit::plan_;

TEST_F(MemoryLimit, OfAddressSpace) {
  const std::string unlimited = RunProgram(RunArguments()).output;
  const RunResult above = RunProgram(
      RunArguments(), {.address_space_limit_bytes = Planned("address_space_bytes", 105)});
  ExpectRan(above);
  EXPECT_EQ(above.output, unlimited);
  const RunOptions below = {.address_space_limit_bytes = Planned("address_space_bytes", 95)};
  ExpectRefused(RunProgram(RunArguments(), below), "ulimit -v allows");
  // The sentence is not the last word, but nothing else may be worse than an error.
  const RunResult forced = RunProgram(RunArguments({"--force"}), below);
  EXPECT_EQ(forced.signal, 0);
  if (forced.exit_code == 0) {
    EXPECT_EQ(forced.output, unlimited);
  } else {
    EXPECT_EQ(forced.exit_code, 1);
    EXPECT_THAT(forced.error, StartsWith("cria: error: "));
  }
}

// With --force, and less address space each time, down to little more than the program needs.
TEST_F(MemoryLimit, OfAddressSpaceForced) {
  uint64_t step = 8 * kMebibyte;
  for (uint64_t limit = Planned("address_space_bytes", 100); limit > 14 * kMebibyte;
       limit -= step) {
    if (limit < 40 * kMebibyte) step = kMebibyte;
    const RunResult result = RunProgram(
        RunArguments({"--force"}), {.address_space_limit_bytes = limit, .timeout_seconds = 20.0});
    ASSERT_FALSE(result.timed_out) << limit;
    EXPECT_EQ(result.signal, 0) << limit << ": " << result.error;
    if (result.exit_code == 0) {
      ExpectRan(result);
    } else {
      EXPECT_EQ(result.exit_code, 1) << limit << ": " << result.error;
      EXPECT_THAT(result.error, StartsWith("cria: error: ")) << limit;
    }
  }
}

// A control group of its own below the group of this process, or at the top of the hierarchy.
class ControlGroup {
 public:
  ControlGroup() {
    const struct {
      const char* parent;
      const char* limit_file;
    } kinds[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                 {"/sys/fs/cgroup", "memory.max"},
                 {"/sys/fs/cgroup/unified", "memory.max"}};
    for (const auto& kind : kinds) {
      path_ = Format("{}/cria-test-{}", kind.parent, getpid());
      if (mkdir(path_.c_str(), 0755) != 0) {
        why_not_ = Format("{}: {}", path_, std::strerror(errno));
        continue;
      }
      limit_file_ = path_ + "/" + kind.limit_file;
      if (access(limit_file_.c_str(), W_OK) == 0) return;
      why_not_ = limit_file_ + " is not there";
      rmdir(path_.c_str());
    }
    path_.clear();
  }
  ~ControlGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  bool exists() const { return !path_.empty(); }
  const std::string& why_not() const { return why_not_; }

  bool Limit(uint64_t bytes) const {
    std::ofstream file(limit_file_);
    file << bytes << std::flush;
    return file.good();
  }

  // Runs a program as a member from its first instruction on.
  RunResult Run(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all = {"/bin/sh", "-c", "echo $$ > \"$0\" && exec \"$@\"",
                                    path_ + "/cgroup.procs"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunProgram(all);
  }

  // How many processes of the group were killed because of its limit; absent if the system does not
  // provide it.
  std::optional<uint64_t> Kills() const {
    for (const char* name : {"memory.oom_control", "memory.events"}) {
      std::ifstream file(path_ + "/" + name);
      std::string word;
      uint64_t count = 0;
      while (file >> word >> count) {
        if (word == "oom_kill") return count;
      }
    }
    return std::nullopt;
  }

 private:
  std::string path_;
  std::string limit_file_;
  std::string why_not_;
};

TEST_F(MemoryLimit, OfAControlGroup) {
  const ControlGroup group;
  if (!group.exists()) {
    GTEST_SKIP() << "no control group can be made here: " << group.why_not();
  }
  if (!group.Limit(Planned("peak_bytes", 105))) {
    GTEST_SKIP() << "the limit of a control group cannot be set here";
  }
  if (group.Run({"/bin/true"}).exit_code != 0) {
    GTEST_SKIP() << "no process can be moved into a control group here";
  }
  ExpectRan(group.Run(RunArguments()));
  // This run touches every page of the KV cache.
  const RunResult filled =
      group.Run(model_->Arguments("bench", WithContext({"--memory"}, kContext)));
  EXPECT_EQ(filled.exit_code, 0) << filled.error;
  EXPECT_EQ(filled.signal, 0);

  ASSERT_TRUE(group.Limit(Planned("peak_bytes", 95)));
  ExpectRefused(group.Run(RunArguments()), "the limit of its control group");
  EXPECT_EQ(group.Kills().value_or(0), 0u);
}

}  // namespace
}  // namespace cria
