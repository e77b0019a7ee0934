#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llm/generator.h"
#include "llm/session_file.h"
#include "llm/session_file_layout.h"
#include "llm/tiny_engine.h"
#include "llm/turn.h"
#include "model/file_layout.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {

using Tokens = std::vector<int32_t>;

inline Tokens SomeTokens(size_t count, int32_t seed = 5) {
  Tokens tokens(count);
  for (size_t i = 0; i < count; ++i) {
    const auto n = static_cast<int32_t>(i);
    tokens[i] = (n * n * 7 + n * 13 + seed) % 250;
  }
  return tokens;
}

inline ConversationState SomeConversation() {
  ConversationState conversation;
  conversation.messages = {{"system", "Be brief."},
                           {"user", std::string("zero \0 and \xFF bytes", 18)},
                           {"assistant", ""}};
  conversation.num_system_messages = 1;
  conversation.variables = R"({"tools": []})";
  conversation.has_forgotten = true;
  conversation.begin_time = {.tm_sec = 59,
                             .tm_min = 58,
                             .tm_hour = 23,
                             .tm_mday = 29,
                             .tm_mon = 1,
                             .tm_year = 124,
                             .tm_wday = 4,
                             .tm_yday = 59};
  return conversation;
}

inline void ExpectEqual(const ConversationState& read, const ConversationState& expected) {
  ASSERT_EQ(read.messages.size(), expected.messages.size());
  for (size_t i = 0; i < read.messages.size(); ++i) {
    EXPECT_EQ(read.messages[i].role, expected.messages[i].role);
    EXPECT_EQ(read.messages[i].content, expected.messages[i].content);
    EXPECT_EQ(read.messages[i].fields, expected.messages[i].fields);
  }
  EXPECT_EQ(read.num_system_messages, expected.num_system_messages);
  EXPECT_EQ(read.variables, expected.variables);
  EXPECT_EQ(read.has_forgotten, expected.has_forgotten);
  char times[2][64] = {};
  std::strftime(times[0], sizeof times[0], "%A %d %B %Y %T %j", &read.begin_time);
  std::strftime(times[1], sizeof times[1], "%A %d %B %Y %T %j", &expected.begin_time);
  EXPECT_STREQ(times[0], times[1]);
}

// The bytes of a session file, to be changed.
struct SessionBytes {
  explicit SessionBytes(std::string bytes) : all(std::move(bytes)) {
    std::memcpy(&preamble, all.data(), sizeof preamble);
    std::memcpy(&head, all.data() + sizeof preamble, sizeof head);
  }

  size_t state_offset() const { return sizeof preamble + preamble.metadata_bytes; }

  // The file with these preamble and head, and checksums that match.
  std::string Crafted() {
    std::memcpy(all.data() + sizeof preamble, &head, sizeof head);
    const auto metadata = std::string_view(all).substr(sizeof preamble, preamble.metadata_bytes);
    preamble.metadata_digest = Digest128(std::as_bytes(std::span(metadata)));
    preamble.preamble_checksum = PreambleChecksum(preamble);
    std::memcpy(all.data(), &preamble, sizeof preamble);
    return all;
  }

  std::string all;
  FilePreamble preamble;
  SessionHead head;
};

class SessionFileTest : public testing::Test {
 protected:
  // The model of most tests, converted once.
  static const TinyModelFile& Model() {
    static const TinyModelFile model(support::SpecGqa(), 512);
    return model;
  }

  static void ExpectPrefill(Session& session, const Tokens& tokens) {
    const Status read = Turn(session).Prefill(tokens);
    EXPECT_TRUE(read) << read.error().message();
  }

  void Save(TinyEngine& engine, const ConversationState& conversation = SomeConversation(),
            SessionContent content = SessionContent::kConversation) const {
    const Status saved = SaveSession(path_, content, conversation, engine.session(),
                                     engine.session().tokens().size(), engine);
    ASSERT_TRUE(saved) << saved.error().message();
  }

  Result<LoadedSession> Load(TinyEngine& engine,
                             SessionContent content = SessionContent::kConversation) const {
    return LoadSession(path_, content, engine, engine.session());
  }

  // A file of `num_tokens` tokens.
  std::string SavedBytes(TinyEngine& engine, size_t num_tokens) const {
    ExpectPrefill(engine.session(), SomeTokens(num_tokens));
    Save(engine);
    return support::ReadFile(path_);
  }

  void ExpectRefused(TinyEngine& engine, const std::string& bytes, ErrorCode code) const {
    support::WriteFile(path_, bytes);
    const auto loaded = Load(engine);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code(), code) << loaded.error().message();
    EXPECT_THAT(loaded.error().message(), testing::StartsWith(path_ + ": "));
  }

  static Tokens Generate(Session& session, size_t count) {
    auto sampler = Unwrap(Sampler::Create({.temperature = 0.0f}, 300));
    Tokens generated;
    const auto reason =
        cria::Generate(session, {.max_tokens = count}, sampler, [&](const GeneratedToken& token) {
          generated.push_back(token.id);
          return true;
        });
    EXPECT_TRUE(reason) << reason.error().message();
    return generated;
  }

  static std::vector<float> Logits(Session& session) {
    Turn turn(session);
    const LogitRows rows = Unwrap(turn.Logits());
    return {rows.front().begin(), rows.front().end()};
  }

  support::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "session";
};

}  // namespace cria
