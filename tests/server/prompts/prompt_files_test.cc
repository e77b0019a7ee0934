// Prompts that the KV cache gave up come back from files, also after a restart.

#include "server/prompts/prompt_files.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include "server/prompts/prompt_files_fixture.h"
#include "support/emulation.h"

namespace cria::server {
namespace {

namespace fs = std::filesystem;

using testing::IsEmpty;
using testing::SizeIs;

struct KindCase {
  const char* name;
  std::unique_ptr<TinyModelFile> (*model)();
  KvType kv_type;
};

std::unique_ptr<TinyModelFile> GqaModel() {
  return std::make_unique<TinyModelFile>(support::SpecGqa(), 1024);
}
std::unique_ptr<TinyModelFile> WindowModel() {
  return std::make_unique<TinyModelFile>(support::SpecMinistral(), 1024);
}
std::unique_ptr<TinyModelFile> ConvolutionModel() {
  return std::make_unique<TinyModelFile>(LongFamily("Lfm2", 1024));
}
std::unique_ptr<TinyModelFile> MambaModel() {
  return std::make_unique<TinyModelFile>(LongFamily("GraniteMamba", 1024));
}

class PromptFilesOfKind : public PromptFilesTest, public testing::WithParamInterface<KindCase> {};

TEST_P(PromptFilesOfKind, AfterARestartAPromptIsReadAndNotComputed) {
  const std::unique_ptr<TinyModelFile> model = GetParam().model();
  const ServedOptions options = {.kv_type = GetParam().kv_type};
  Tokens conversation = prompt_;
  {
    Served served(*model, path_, options);
    const auto answered = served.Answer(prompt_);
    EXPECT_EQ(answered.computed, prompt_.size());
    conversation.insert(conversation.end(), answered.tokens.begin(), answered.tokens.end());
    served.WriteAll();
    EXPECT_EQ(served.files().figures().num_files, 1u);
    EXPECT_EQ(served.files().figures().bytes, fs::file_size(FilePath()));
  }
  conversation.push_back(7);
  Tokens expected;
  {
    Served alone(*model, folder_ / "other", options);
    expected = alone.Answer(conversation).tokens;
  }
  Served later(*model, path_, options);
  const auto answered = later.Answer(conversation);
  // The last token of the first answer had not been run.
  EXPECT_EQ(answered.computed, 2u);
  EXPECT_EQ(answered.tokens, expected);
  EXPECT_EQ(later.files().figures().files_read, 1u);
  EXPECT_EQ(later.notices, "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, PromptFilesOfKind,
                         testing::Values(KindCase{"F32", GqaModel, KvType::kF32},
                                         KindCase{"F16", GqaModel, KvType::kF16},
                                         KindCase{"Int8", GqaModel, KvType::kInt8},
                                         KindCase{"Windows", WindowModel, KvType::kInt8},
                                         KindCase{"Convolutions", ConvolutionModel, KvType::kF16},
                                         KindCase{"Mamba", MambaModel, KvType::kInt8}),
                         [](const auto& param) { return param.param.name; });

TEST_F(PromptFilesTest, ABeginningOfAFileIsOfUse) {
  Tokens expected;
  Tokens other = prompt_;
  other.resize(300);
  other.push_back(3);
  {
    const auto served = Start();
    expected = served->Answer(other).tokens;
    served->Answer(prompt_);
    served->WriteAll();
  }
  const auto later = Start();
  const auto answered = later->Answer(other);
  EXPECT_EQ(answered.computed, 1u);
  EXPECT_EQ(answered.tokens, expected);
}

TEST_F(PromptFilesTest, WhatIsGivenUpIsWritten) {
  const auto served = Start();
  const Tokens expected = served->Answer(prompt_).tokens;
  EXPECT_THAT(support::FileNames(path_), IsEmpty());
  served->Answer(SomeTokens(600, 2));
  served->files().Flush();
  EXPECT_EQ(fs::status(FilePath()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const auto again = served->Answer(prompt_);
  EXPECT_EQ(again.computed, 1u);
  EXPECT_EQ(again.tokens, expected);
  served->files().Flush();
  EXPECT_EQ(served->files().figures().files_written, 2u);
  // What is on the disk is not written again.
  served->Answer(SomeTokens(600, 2));
  served->WriteAll();
  EXPECT_EQ(served->files().figures().files_written, 2u);
}

TEST_F(PromptFilesTest, ALongerTextTakesThePlaceOfItsBeginning) {
  const auto served = Start();
  Tokens conversation = prompt_;
  for (const size_t num_more : {100, 100}) {
    const Tokens answer = served->Answer(conversation).tokens;
    served->WriteAll();
    EXPECT_EQ(served->files().figures().files_written, 1u) << "less than a quarter is new";
    conversation.insert(conversation.end(), answer.begin(), answer.end());
    const Tokens more = SomeTokens(num_more, 9);
    conversation.insert(conversation.end(), more.begin(), more.end());
  }
  const std::string first = FilePath();
  conversation.resize(900, 5);
  served->Answer(conversation);
  served->WriteAll();
  EXPECT_EQ(served->files().figures().files_written, 2u);
  EXPECT_NE(FilePath(), first);
}

TEST_F(PromptFilesTest, TheLeastRecentlyUsedGoesForOthersAndTheBoundHolds) {
  uint64_t file_bytes = 0;
  {
    const auto served = Start();
    served->Answer(prompt_);
    served->WriteAll();
    file_bytes = fs::file_size(FilePath());
  }
  const auto total = [&] {
    uint64_t bytes = 0;
    for (const std::string& name : support::FileNames(path_)) {
      bytes += fs::file_size(path_ + "/" + name);
    }
    return bytes;
  };
  const ServedOptions three = {.max_bytes = 3 * file_bytes + 1000};
  {
    const auto served = Start(three);
    for (int32_t i = 2; i < 8; ++i) {
      served->Answer(SomeTokens(500, i));
      // It is used again and again.
      EXPECT_EQ(served->Answer(prompt_).computed, 1u);
      served->files().Flush();
      EXPECT_LE(total(), three.max_bytes);
    }
    EXPECT_EQ(served->files().figures().num_files, 3u);
  }
  // What was used last is known after a restart, too, also with a smaller bound.
  const auto later = Start({.max_bytes = file_bytes + 1000});
  EXPECT_EQ(later->files().figures().num_files, 1u);
  EXPECT_EQ(later->Answer(prompt_).computed, 1u);
}

TEST_F(PromptFilesTest, ATextLargerThanTheBoundIsNotWritten) {
  const auto served = Start({.max_bytes = 10'000});
  served->Answer(prompt_);
  served->Answer(SomeTokens(500, 2));
  served->WriteAll();
  EXPECT_THAT(support::FileNames(path_), IsEmpty());
  EXPECT_EQ(served->notices, "");
}

bool HasUnfinishedFile(const std::string& folder) {
  return std::ranges::any_of(support::FileNames(folder),
                             [](const std::string& name) { return name.starts_with('.'); });
}

// Stops the process again and again until `folder` has an unfinished file while it stands still:
// a process that runs could finish the file between the look at the folder and the signal.
// Returns whether that was reached within a minute; the process is stopped then.
bool StopWhileWriting(pid_t writer, const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    if (HasUnfinishedFile(folder)) {
      kill(writer, SIGSTOP);
      int status = 0;
      if (waitpid(writer, &status, WUNTRACED) != writer || !WIFSTOPPED(status)) return false;
      if (HasUnfinishedFile(folder)) return true;
      kill(writer, SIGCONT);
    }
    usleep(20);
  }
  return false;
}

// Killed at any moment, and while it writes, a server leaves no file that is used and wrong.
TEST_F(PromptFilesTest, KilledAtAnyMomentItLeavesOnlyWholeFiles) {
  const int rounds = support::IsEmulated() ? 5 : 50;
  std::vector<Tokens> prompts;
  std::vector<Tokens> expected;
  {
    const auto served = Start();
    for (int32_t i = 0; i < 4; ++i) {
      prompts.push_back(SomeTokens(400 + 50 * static_cast<size_t>(i), i));
      expected.push_back(served->Answer(prompts.back()).tokens);
    }
  }
  fs::remove_all(path_);
  std::mt19937 random(3);
  int found = 0;
  for (int round = 0; round < rounds; ++round) {
    int ready[2] = {};
    ASSERT_EQ(pipe(ready), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      const auto served = Start();
      static_cast<void>(write(ready[1], "", 1));
      // Prompts that no file has yet make it write until the end.
      for (int32_t i = 0;; ++i) {
        served->Answer(prompts[static_cast<size_t>(i) % prompts.size()]);
        served->Answer(SomeTokens(400, 1000 * (round + 1) + i));
      }
    }
    close(ready[1]);
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    bool is_stopped = true;
    if (round % 2 == 0) {
      usleep(std::uniform_int_distribution<useconds_t>(0, 100'000)(random));
    } else {
      is_stopped = StopWhileWriting(writer, path_);
    }
    kill(writer, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(is_stopped) << "the process was never seen while it was writing";
    const auto later = Start();
    ASSERT_EQ(later->notices, "") << "round " << round;
    found += later->files().figures().num_files > 0;
    const size_t chosen = static_cast<size_t>(round) % prompts.size();
    ASSERT_EQ(later->Answer(prompts[chosen]).tokens, expected[chosen]) << "round " << round;
    ASSERT_FALSE(HasUnfinishedFile(path_)) << "round " << round;
    if (round % 5 == 4) fs::remove_all(path_);
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace cria::server
