// What a session file keeps, and how it is written. session_file_refusal_test.cc has what is
// refused.

#include "llm/session_file.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "llm/session_file_fixture.h"
#include "support/emulation.h"

namespace cria {
namespace {

using testing::IsEmpty;
using testing::Not;

struct RoundTripCase {
  const char* name;
  support::CheckpointSpec (*spec)();  // Null: `family`.
  KvType kv_type;
  support::FamilyCheckpoint (*family)() = nullptr;
};

support::FamilyCheckpoint LongLfm2() { return LongFamily("Lfm2", 512); }
support::FamilyCheckpoint LongQwen35() { return LongFamily("Qwen35", 512); }
support::FamilyCheckpoint LongMamba() { return LongFamily("GraniteMamba", 512); }

class SessionRoundTrip : public SessionFileTest,
                         public testing::WithParamInterface<RoundTripCase> {};

TEST_P(SessionRoundTrip, ContinuesWithTheSameLogits) {
  const auto spec = GetParam().spec;
  const auto model = spec == nullptr ? std::make_unique<TinyModelFile>(GetParam().family())
                                     : std::make_unique<TinyModelFile>(spec(), 512);
  const auto saved = model->Load(GetParam().kv_type, 300);
  ExpectPrefill(saved->session(), SomeTokens(260));
  // Keys are turned, whole pages are unlinked, and the rest is given new pages.
  ASSERT_TRUE(Turn(saved->session()).Drop(3, 128));
  Generate(saved->session(), 10);
  Save(*saved);
  const Tokens tokens(saved->session().tokens().begin(), saved->session().tokens().end());
  ASSERT_EQ(saved->num_cached_tokens() + 1, tokens.size());

  const auto loaded = model->Load(GetParam().kv_type, 300);
  Session& session = loaded->session();
  // The pages have had other tokens, in another order.
  ExpectPrefill(session, SomeTokens(290, 77));
  ASSERT_TRUE(Turn(session).Drop(0, 64));
  const auto state = Load(*loaded);
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(state->why_read_again, "");
  ExpectEqual(state->conversation, SomeConversation());
  EXPECT_EQ(Tokens(session.tokens().begin(), session.tokens().end()), tokens);
  EXPECT_EQ(loaded->num_cached_tokens() + 1, tokens.size());

  EXPECT_EQ(Logits(session), Logits(saved->session()));
  EXPECT_EQ(Generate(session, 20), Generate(saved->session(), 20));
  // Only what follows the saved tokens is computed.
  Tokens longer = tokens;
  longer.push_back(7);
  ExpectPrefill(session, longer);
  EXPECT_EQ(session.stats().reused_tokens, tokens.size());
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, SessionRoundTrip,
    testing::Values(RoundTripCase{"F32", support::SpecGqa, KvType::kF32},
                    RoundTripCase{"F16", support::SpecOddHeadDim, KvType::kF16},
                    RoundTripCase{"Int8", support::SpecGqa, KvType::kInt8},
                    RoundTripCase{"Windows", support::SpecMinistral, KvType::kInt8},
                    RoundTripCase{"DynamicRope", support::SpecDynamicRope, KvType::kF32},
                    RoundTripCase{"Mixture", nullptr, KvType::kInt8, support::WideMixture},
                    RoundTripCase{"ShortConvolutions", nullptr, KvType::kInt8, LongLfm2},
                    RoundTripCase{"LinearAttention", nullptr, KvType::kInt8, LongQwen35},
                    RoundTripCase{"Mamba", nullptr, KvType::kInt8, LongMamba}),
    [](const auto& param) { return param.param.name; });

TEST_F(SessionFileTest, IsTheSameWhicheverPagesHeldTheTokens) {
  const auto engine = Model().Load(KvType::kInt8, 200);
  const std::string first = SavedBytes(*engine, 150);
  const KvPages& pages = engine->decoder().sequences().pages();
  const auto table = [&pages] {
    const auto held = pages.Table(TinyEngine::kSequence).pages;
    return std::vector<uint32_t>(held.begin(), held.end());
  };
  const std::vector<uint32_t> before = table();
  ExpectPrefill(engine->session(), SomeTokens(200, 9));
  ASSERT_TRUE(Turn(engine->session()).Drop(0, 128));
  EXPECT_EQ(SavedBytes(*engine, 150), first);
  EXPECT_NE(table(), before);
}

TEST_F(SessionFileTest, KeepsATextWithoutMessages) {
  const auto engine = Model().Load(KvType::kF32, 100);
  ExpectPrefill(engine->session(), SomeTokens(70));
  Save(*engine, {}, SessionContent::kText);
  engine->session().Clear();
  const auto loaded = Load(*engine, SessionContent::kText);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->why_read_again, "");
  EXPECT_THAT(loaded->conversation.messages, IsEmpty());
  EXPECT_EQ(engine->num_cached_tokens(), 70u);
}

TEST_F(SessionFileTest, KeepsTheFieldsOfMessages) {
  const auto engine = Model().Load(KvType::kF32, 100);
  ExpectPrefill(engine->session(), SomeTokens(70));
  ConversationState conversation = SomeConversation();
  // Without fields, the metadata end with the texts, as in files of older versions.
  const SessionBytes without(SavedBytes(*engine, 70));
  size_t metadata_bytes = sizeof(SessionHead) + without.head.num_blocks * sizeof(uint64_t) +
                          70 * sizeof(int32_t) + conversation.variables.size();
  for (const ChatMessage& message : conversation.messages) {
    metadata_bytes += sizeof(MessageBytes) + message.role.size() + message.content.size();
  }
  EXPECT_EQ(without.preamble.metadata_bytes, metadata_bytes);
  conversation.messages[2].fields = R"({"tool_calls": [{"function": {"name": "f"}}]})";
  conversation.messages.push_back({"tool", "3", R"({"tool_call_id": "a\u0000b"})"});
  conversation.messages.push_back({"user", "Go on."});
  Save(*engine, conversation);
  for (int i = 0; i < 2; ++i) {
    const auto loaded = Load(*engine);
    ASSERT_TRUE(loaded) << loaded.error().message();
    EXPECT_EQ(loaded->why_read_again, "");
    ExpectEqual(loaded->conversation, conversation);
    Save(*engine, loaded->conversation);
  }
}

TEST_F(SessionFileTest, KeepsWhatTheLayerThatGuessesReads) {
  const TinyModelFile model(support::FamilyNamed("Qwen35Mtp"));
  const auto load = [&](bool has_mtp) {
    return std::make_unique<TinyEngine>(
        Unwrap(Engine::Load(model.path(), {.num_threads = 1,
                                           .context_tokens = 128,
                                           .kv_type = KvType::kInt8,
                                           .drafts = {.has_mtp = has_mtp}})));
  };
  const auto guesses = [](TinyEngine& engine) {
    std::vector<float> all;
    const size_t position = engine.num_cached_tokens();
    const GuessRequest request = {
        .sequence = TinyEngine::kSequence, .position = position, .token = 5, .max_tokens = 2};
    Unwrap(engine.decoder().Guess(request, [&](std::span<float> logits) {
      all.insert(all.end(), logits.begin(), logits.end());
      return 7;
    }));
    return all;
  };
  const auto saved = load(true);
  ExpectPrefill(saved->session(), SomeTokens(70));
  Save(*saved);
  const auto loaded = load(true);
  ExpectPrefill(loaded->session(), SomeTokens(20, 8));
  EXPECT_EQ(Unwrap(Load(*loaded)).why_read_again, "");
  EXPECT_EQ(loaded->num_cached_tokens(), 70u);
  EXPECT_EQ(guesses(*loaded), guesses(*saved));
  // Another engine does not have the layer, and could not keep what it reads.
  EXPECT_NE(Unwrap(Load(*load(false))).why_read_again, "");
}

TEST_F(SessionFileTest, KeepsAConversationAlone) {
  const auto engine = Model().Load(KvType::kF32, 100);
  ExpectPrefill(engine->session(), SomeTokens(70));
  ASSERT_TRUE(SaveSession(path_, SessionContent::kConversation, SomeConversation(),
                          engine->session(), 0, *engine));
  const auto loaded = Load(*engine);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->why_read_again, "it has only the messages");
  ExpectEqual(loaded->conversation, SomeConversation());
  // A context that was not replaced is as it was.
  EXPECT_EQ(engine->num_cached_tokens(), 70u);
}

TEST_F(SessionFileTest, LosesTheLogitsOfTheContextBefore) {
  const auto engine = Model().Load(KvType::kF32, 100);
  SavedBytes(*engine, 20);
  // Computes the last token by itself, as after loading.
  ExpectPrefill(engine->session(), SomeTokens(20));
  const std::vector<float> expected = Logits(engine->session());
  ExpectPrefill(engine->session(), SomeTokens(20, 8));
  EXPECT_NE(Logits(engine->session()), expected);
  ASSERT_TRUE(Load(*engine));
  EXPECT_EQ(Logits(engine->session()), expected);
}

TEST_F(SessionFileTest, OnlyTheOwnerMayRead) {
  const auto engine = Model().Load(KvType::kF32, 100);
  support::WriteFile(path_, "an older file, which everybody may read");
  std::filesystem::permissions(path_, std::filesystem::perms(0644));
  const mode_t before = umask(0);
  Save(*engine);
  umask(before);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
  EXPECT_THAT(support::FileNames(folder_.path()), testing::ElementsAre("session"));
}

TEST_F(SessionFileTest, AnErrorOfWritingLeavesTheOldFile) {
  const auto engine = Model().Load(KvType::kF32, 100);
  const auto conversation = SomeConversation();
  const auto save = [&](const std::string& path) {
    return SaveSession(path, SessionContent::kConversation, conversation, engine->session(), 0,
                       *engine);
  };
  EXPECT_FALSE(save(folder_ / "missing/session"));
  EXPECT_FALSE(save(folder_.path()));
  EXPECT_FALSE(save(""));
}

// A child saves one of two conversations again and again, until it is killed.
TEST_F(SessionFileTest, KillingTheWriterLeavesAWholeFile) {
  const auto engine = Model().Load(KvType::kF32, 400);
  ExpectPrefill(engine->session(), SomeTokens(390));
  ConversationState conversations[2] = {SomeConversation(), SomeConversation()};
  conversations[1].messages[1].content.assign(20'000, 'x');
  Save(*engine, conversations[0]);

  std::mt19937 random(1);
  size_t seen[2] = {};
  const int rounds = support::IsEmulated() ? 20 : 150;
  for (int round = 0; round < rounds; ++round) {
    int saves[2] = {};
    ASSERT_EQ(pipe(saves), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      for (auto i = static_cast<size_t>(round) + 1;; ++i) {
        if (!SaveSession(path_, SessionContent::kConversation, conversations[i % 2],
                         engine->session(), 390, *engine) ||
            write(saves[1], "", 1) != 1) {
          _exit(1);
        }
      }
    }
    close(saves[1]);
    // It is killed at a random moment after some saves, which begin with either by turns.
    char byte = 0;
    for (int count = round / 2 % 3; count > 0; --count) ASSERT_EQ(read(saves[0], &byte, 1), 1);
    usleep(std::uniform_int_distribution<useconds_t>(0, 3000)(random));
    kill(writer, SIGKILL);
    close(saves[0]);
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it could not save";
    const auto loaded = Load(*engine);
    ASSERT_TRUE(loaded) << loaded.error().message();
    ASSERT_EQ(loaded->why_read_again, "");
    const bool is_second = loaded->conversation.messages[1].content.size() == 20'000;
    ++seen[is_second ? 1 : 0];
    ExpectEqual(loaded->conversation, conversations[is_second ? 1 : 0]);
  }
  EXPECT_GT(seen[0], 0u);
  EXPECT_GT(seen[1], 0u);
  // The next save removes what the killed ones left.
  Save(*engine);
  EXPECT_THAT(support::FileNames(folder_.path()), testing::ElementsAre("session"));
}

}  // namespace
}  // namespace cria
