// Stopped or killed at any moment, getting a model leaves a store that works.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>

#include "cli/models/store_fixture.h"
#include "support/files.h"
#include "support/run_program.h"
#include "support/sleeping_thread.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;
using support::HttpRequest;
using support::HttpResponse;
using support::RunResult;
using testing::HasSubstr;
using testing::IsEmpty;

class KilledPull : public tests::StoreTest {};

TEST_F(KilledPull, AtAnyMomentItLeavesAStoreThatWorks) {
  constexpr int kRounds = 50;
  const std::string answer = Answer();
  const Clock::time_point start = Clock::now();
  ASSERT_EQ(Run({"pull", name_}).exit_code, 0);
  const std::chrono::duration<double> whole = Clock::now() - start;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> moment(0.0, 1.0);
  int killed = 0;
  int left = 0;
  for (int round = 0; round < kRounds; ++round) {
    fs::remove_all(Store());
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(whole * moment(random));
    const RunResult pull = Run({"pull", name_}, {.after_start = [&](int program) {
                                 while (Clock::now() < end && !support::HasEnded(program)) {
                                   usleep(500);
                                 }
                                 kill(program, SIGKILL);
                               }});
    killed += pull.signal == SIGKILL;
    left += pull.signal == SIGKILL && !Entries().empty();
    const RunResult chat = Chat(name_);
    ASSERT_EQ(chat.exit_code, 0) << "round " << round << "\n" << chat.error;
    ASSERT_EQ(chat.output, answer) << "round " << round;
    ExpectOneEntry();
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GE(killed, kRounds / 2);
  EXPECT_GE(left, kRounds / 10) << "no process was killed while it had something in the store";
}

TEST_F(KilledPull, CtrlCLeavesNothingAndTheDownloadGoesOn) {
  // The second half of the file is sent only after the program has ended.
  std::atomic<bool> has_ended = false;
  hub_.change_file = [&](const HttpRequest& request, HttpResponse& response) {
    if (!request.target.starts_with("/storage/")) return;
    response.part_bytes = response.body.size() / 2;
    response.after_part = [&] { support::Await([&] { return has_ended.load(); }); };
  };
  // The files before it are whole after a moment, and a stop among them leaves nothing to go on
  // with.
  const auto has_part = [&] {
    std::error_code error;
    for (fs::recursive_directory_iterator file(Store(), error);
         !error && file != fs::recursive_directory_iterator(); file.increment(error)) {
      std::error_code absent;
      if (file->path().filename() == "model.safetensors.part" && file->file_size(absent) > 0 &&
          !absent) {
        return true;
      }
    }
    return false;
  };
  const RunResult stopped = Run({"pull", name_}, {.after_start = [&](int program) {
                                  support::Await([&] { return has_part(); });
                                  kill(program, SIGINT);
                                }});
  has_ended = true;
  EXPECT_EQ(stopped.exit_code, 130) << stopped.error;
  EXPECT_THAT(stopped.error, HasSubstr("the same command goes on"));
  EXPECT_THAT(Entries(), IsEmpty());
  hub_.change_file = {};
  const size_t before = hub_.requests().size();
  ASSERT_EQ(Run({"pull", name_}).exit_code, 0);
  size_t continued = 0;
  const auto requests = hub_.requests();
  for (size_t i = before; i < requests.size(); ++i) {
    continued += requests[i].header("range").contains("bytes=");
  }
  EXPECT_GE(continued, 1u);
  ExpectOneEntry();
}

TEST_F(KilledPull, WhatIsLeftIsRemovedByTheNextStart) {
  ASSERT_EQ(Run({"pull", name_}).exit_code, 0);
  const std::string id(32, 'a');
  for (const char* ending : {".new", ".old"}) {
    fs::create_directory(Store() / (id + ending));
    support::WriteFile(Store() / (id + ending) / "half.cria", "CRIA");
  }
  EXPECT_EQ(Run({"models"}).exit_code, 0);
  ExpectOneEntry();
  // An entry without its file is made again.
  const fs::path entry = Store() / Entries().at(0);
  for (const std::string& name : support::FileNames(entry)) {
    if (name.ends_with(".cria")) fs::remove(entry / name);
  }
  EXPECT_EQ(Chat(name_).output, Answer());
  ExpectOneEntry();
}

}  // namespace
}  // namespace cria
