#include "server/http/pending_answer.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace cria::server {
namespace {

using namespace std::chrono_literals;
using Stage = PendingAnswer::Stage;

class PendingAnswerTest : public testing::Test {
 protected:
  // An answer in the list would keep itself.
  ~PendingAnswerTest() override {
    handle_.reset();
    NumWoken();
  }

  size_t NumWoken() {
    std::vector<std::shared_ptr<PendingAnswer>> woken;
    wake_list_->Take(woken);
    return woken.size();
  }

  std::string ReadAll() {
    std::string text;
    for (;;) {
      std::array<char, 3> bytes;
      const PendingAnswer::Part part = answer_->Read(bytes);
      text.append(bytes.data(), part.num_bytes);
      if (part.num_bytes == 0) return text;
    }
  }

  const std::shared_ptr<WakeList> wake_list_ = std::make_shared<WakeList>(4);
  const std::shared_ptr<PendingAnswer> answer_ =
      std::make_shared<PendingAnswer>(wake_list_, 8, 10s);
  std::shared_ptr<HttpAnswer> handle_ = answer_->ForHandler();
};

TEST_F(PendingAnswerTest, WakesTheReaderOnlyWhenItWaits) {
  EXPECT_EQ(answer_->WaitForHead(), Stage::kNothing);
  handle_->Begin(200, "text/plain");
  EXPECT_EQ(NumWoken(), 1u);
  EXPECT_EQ(answer_->WaitForHead(), Stage::kParts);
  EXPECT_TRUE(handle_->Write("ab"));
  EXPECT_TRUE(handle_->Write("cd"));
  EXPECT_EQ(NumWoken(), 0u);
  EXPECT_EQ(ReadAll(), "abcd");
  EXPECT_TRUE(handle_->Write("e"));
  EXPECT_TRUE(handle_->Write("f"));
  EXPECT_EQ(NumWoken(), 1u);
  EXPECT_EQ(ReadAll(), "ef");
  handle_->End();
  EXPECT_EQ(NumWoken(), 1u);
  std::array<char, 3> bytes;
  EXPECT_TRUE(answer_->Read(bytes).is_last);
}

TEST_F(PendingAnswerTest, TheRingKeepsTheOrder) {
  handle_->Begin(200, "");
  std::string sent;
  std::string read;
  for (int i = 0; i < 100; ++i) {
    const std::string part = std::to_string(i * i % 1000);
    sent += part;
    EXPECT_TRUE(handle_->Write(part));
    read += ReadAll();
  }
  EXPECT_EQ(read, sent);
}

TEST_F(PendingAnswerTest, WriteWaitsForSpace) {
  handle_->Begin(200, "");
  EXPECT_TRUE(handle_->Write("12345678"));
  std::thread writer([&] {
    EXPECT_TRUE(handle_->Write("9012345678901234567890"));
    handle_->End();
  });
  std::string read;
  while (read.size() < 30) read += ReadAll();
  writer.join();
  EXPECT_EQ(read, "123456789012345678901234567890");
}

TEST_F(PendingAnswerTest, WriteGivesUp) {
  const auto answer = std::make_shared<PendingAnswer>(wake_list_, 8, 20ms);
  const auto handle = answer->ForHandler();
  handle->Begin(200, "");
  EXPECT_FALSE(handle->Write("123456789"));
  EXPECT_TRUE(handle->gone());
  // The connection must hear of it although it does not wait for bytes.
  EXPECT_EQ(NumWoken(), 1u);
  EXPECT_EQ(answer->WaitForHead(), Stage::kLost);
}

TEST_F(PendingAnswerTest, AnAbandonedAnswerTakesNothing) {
  handle_->Begin(200, "");
  std::thread writer([&] { EXPECT_FALSE(handle_->Write("1234567890")); });
  answer_->Abandon();
  writer.join();
  EXPECT_TRUE(handle_->gone());
  EXPECT_FALSE(handle_->Write("x"));
  handle_->End();
  std::array<char, 3> bytes;
  EXPECT_TRUE(answer_->Read(bytes).is_lost);
}

TEST_F(PendingAnswerTest, OnlyTheFirstAnswerCounts) {
  handle_->Send(200, "text/plain", "first");
  handle_->Send(500, "text/plain", "second");
  handle_->Begin(500, "text/plain");
  EXPECT_FALSE(handle_->Write("x"));
  handle_.reset();
  EXPECT_EQ(answer_->WaitForHead(), Stage::kWhole);
  EXPECT_EQ(answer_->head().status, 200);
  EXPECT_EQ(answer_->TakeBody(), "first");
}

TEST_F(PendingAnswerTest, DroppingIsAnAnswer) {
  EXPECT_EQ(answer_->WaitForHead(), Stage::kNothing);
  handle_.reset();
  EXPECT_EQ(NumWoken(), 1u);
  EXPECT_EQ(answer_->WaitForHead(), Stage::kWhole);
  EXPECT_EQ(answer_->head().status, 500);
}

TEST_F(PendingAnswerTest, DroppingAfterTheEndIsNoError) {
  handle_->Begin(200, "");
  handle_->Write("ab");
  handle_->End();
  handle_.reset();
  EXPECT_EQ(ReadAll(), "ab");
  std::array<char, 3> bytes;
  const PendingAnswer::Part part = answer_->Read(bytes);
  EXPECT_TRUE(part.is_last);
  EXPECT_FALSE(part.is_lost);
}

}  // namespace
}  // namespace cria::server
