// Conversations of models whose sequences cannot become shorter at will: each token is run once,
// also if turns are undone or answered again, and if two clients share a beginning.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "llm/session_fixture.h"

namespace cria {
namespace {

constexpr size_t kTurns = 20;
constexpr size_t kAnswerTokens = 12;

struct LayersCase {
  const char* name;
  ScriptedLayers layers;
};

class SessionCheckpointTest : public testing::TestWithParam<LayersCase> {
 protected:
  explicit SessionCheckpointTest(size_t num_sequences = 1)
      : model_(kVocabSize, 2048 * num_sequences, 32, NextOf, num_sequences,
               WithCheckpoints(num_sequences)),
        scheduler_(model_) {}

  static ScriptedLayers WithCheckpoints(size_t num_sequences) {
    ScriptedLayers layers = GetParam().layers;
    layers.num_checkpoints = 2 + 2 * num_sequences;
    return layers;
  }

  // A client whose messages are tokens.
  struct Client {
    explicit Client(Scheduler& scheduler) : session(scheduler) {}

    Session session;
    Tokens text;
    size_t turn_begin = 0;  // The last turn's, in the text.
    size_t prompt_end = 0;  // The last question's.
  };

  static Tokens Message(size_t count) {
    static int32_t next = 0;
    Tokens tokens(count);
    for (int32_t& token : tokens) token = ++next * 7 % static_cast<int32_t>(kVocabSize);
    return tokens;
  }

  // Answers the text, and returns how many tokens the model has run for it.
  size_t Answer(Client& client, size_t kept_tokens) {
    const size_t before = model_.tokens_run();
    auto sampler = Sampler::Create({.temperature = 0.0f}, kVocabSize);
    Turn turn(client.session, {.max_tokens = kAnswerTokens, .kept_tokens = kept_tokens});
    EXPECT_TRUE(turn.Prefill(client.text));
    const Tokens expected = Expected(client.text, kAnswerTokens);
    Tokens generated;
    EXPECT_TRUE(
        Generate(turn, {.max_tokens = kAnswerTokens}, *sampler, [&](const GeneratedToken& token) {
          generated.push_back(token.id);
          return true;
        }));
    EXPECT_EQ(generated, expected);
    client.prompt_end = client.text.size();
    client.text.insert(client.text.end(), generated.begin(), generated.end());
    return model_.tokens_run() - before;
  }

  size_t Ask(Client& client, size_t kept_tokens) {
    client.turn_begin = client.text.size();
    const Tokens message = Message(20 + client.text.size() % 9);
    client.text.insert(client.text.end(), message.begin(), message.end());
    return Answer(client, kept_tokens);
  }

  size_t AnswerAgain(Client& client, size_t kept_tokens) {
    client.text.resize(client.prompt_end);
    return Answer(client, kept_tokens);
  }

  void Undo(Client& client) const { client.text.resize(client.turn_begin); }

  ScriptedModel model_;
  Scheduler scheduler_;
};

// The last token of an answer is run with the next question.
TEST_P(SessionCheckpointTest, AConversationRunsEachTokenOnce) {
  Client client(scheduler_);
  client.text = Message(100);
  const size_t system = client.text.size();
  const size_t first_run = Ask(client, system);
  EXPECT_EQ(first_run, client.text.size() - 1);
  for (size_t i = 1; i < kTurns; ++i) {
    const size_t before = client.text.size();
    const size_t run = Ask(client, system);
    EXPECT_EQ(run, client.text.size() - before) << "turn " << i;
  }
}

TEST_P(SessionCheckpointTest, TurnsAreUndoneAndAnsweredAgainWithoutReading) {
  Client client(scheduler_);
  client.text = Message(100);
  const size_t system = client.text.size();
  Ask(client, system);
  for (size_t i = 1; i < kTurns; ++i) {
    const size_t before = client.text.size();
    Ask(client, system);
    // The last token of the question gives the logits.
    EXPECT_EQ(AnswerAgain(client, system), kAnswerTokens) << "turn " << i;
    EXPECT_EQ(AnswerAgain(client, system), kAnswerTokens) << "turn " << i;
    Undo(client);
    EXPECT_EQ(client.text.size(), before);
    const size_t run = Ask(client, system);
    EXPECT_LE(run, client.text.size() - before + 1) << "turn " << i;
  }
}

class TwoClientsCheckpointTest : public SessionCheckpointTest {
 protected:
  TwoClientsCheckpointTest() : SessionCheckpointTest(2) {}
};

TEST_P(TwoClientsCheckpointTest, ClientsTakeTurnsWithOneSystemPrompt) {
  Client first(scheduler_);
  Client second(scheduler_);
  const Tokens system = Message(150);
  first.text = second.text = system;
  const size_t first_run = Ask(first, system.size());
  EXPECT_EQ(first_run, first.text.size() - 1);
  // What the first one has read is there.
  const size_t second_run = Ask(second, system.size());
  EXPECT_EQ(second_run, second.text.size() - 1 - system.size());
  for (size_t i = 1; i < kTurns; ++i) {
    for (Client* const client : {&first, &second}) {
      const size_t before = client->text.size();
      const size_t run = Ask(*client, system.size());
      EXPECT_EQ(run, client->text.size() - before) << "turn " << i;
    }
  }
}

// Without a hint where the system prompt ends, the second client reads it, and the third one finds
// where the first two parted.
TEST_P(TwoClientsCheckpointTest, WhereTextsPartIsRemembered) {
  const Tokens system = Message(150);
  for (size_t i = 0; i < 4; ++i) {
    Client client(scheduler_);
    client.text = system;
    const size_t run = Ask(client, SIZE_MAX);
    const size_t all = client.text.size() - 1;
    const size_t least = all - system.size();
    // Windows may have the rows still.
    EXPECT_TRUE(run == (i == 0 ? all : least) || (i == 1 && run == all)) << "client " << i;
  }
}

const auto kLayersCases =
    testing::Values(LayersCase{"Plain", {}}, LayersCase{"Windows", {.windows = {0, 100}}},
                    LayersCase{"RecurrentWithWindows", {.windows = {0, 80}, .max_state_rows = 1}});
const auto kLayersName = [](const auto& param) { return std::string(param.param.name); };
INSTANTIATE_TEST_SUITE_P(Layers, SessionCheckpointTest, kLayersCases, kLayersName);
INSTANTIATE_TEST_SUITE_P(Layers, TwoClientsCheckpointTest, kLayersCases, kLayersName);

}  // namespace
}  // namespace cria
