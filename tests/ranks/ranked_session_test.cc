// Session files that several ranks write and one reads, and the other way round.

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "llm/generator.h"
#include "llm/session_file.h"
#include "llm/turn.h"
#include "ranks/ranked_engines.h"
#include "support/converted_model.h"
#include "support/emulation.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::ranks {
namespace {

using support::ConvertedModel;

constexpr size_t kPromptTokens = 77;  // More than a page.
// A state of the tokens before the last one is kept, too, so that this one can be run again.
constexpr size_t kSavedTokens = kPromptTokens - 1;
constexpr size_t kGenerated = 12;

EngineOptions Options(KvType kv_type) {
  return {.num_threads = 1, .context_tokens = 128, .chunk_tokens = 16, .kv_type = kv_type};
}

std::vector<int32_t> Prompt() {
  std::vector<int32_t> ids(kPromptTokens);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<int32_t>((i * i * 7 + i * 13 + 5) % 300);
  }
  return ids;
}

std::vector<int32_t> Continue(Session& session, size_t vocab_size) {
  Sampler sampler = Unwrap(Sampler::Create({.temperature = 0.0f}, vocab_size));
  std::vector<int32_t> text;
  Unwrap(cria::Generate(session, {.max_tokens = kGenerated}, sampler,
                        [&text](const GeneratedToken& token) {
                          text.push_back(token.id);
                          return true;
                        }));
  return text;
}

// Saves the session of the prompt but its last token, and returns what the model says after it.
std::vector<int32_t> Save(Engine& engine, const std::string& path) {
  const std::unique_ptr<Session> session = engine.NewSession();
  Unwrap(Turn(*session).Prefill(Prompt()));
  Unwrap(SaveSession(path, SessionContent::kText, {}, *session, kSavedTokens, engine));
  return Continue(*session, engine.file().config().vocab_size);
}

// What the model says after a session that was saved and the prompt's last token. No other token of
// the prompt is run again.
std::vector<int32_t> Load(Engine& engine, const std::string& path) {
  const std::unique_ptr<Session> session = engine.NewSession();
  const LoadedSession loaded = Unwrap(LoadSession(path, SessionContent::kText, engine, *session));
  EXPECT_EQ(loaded.why_read_again, "");
  const size_t before = engine.scheduler().stats().num_tokens;
  Unwrap(Turn(*session).Prefill(Prompt()));
  const std::vector<int32_t> text = Continue(*session, engine.file().config().vocab_size);
  EXPECT_EQ(engine.scheduler().stats().num_tokens - before, kGenerated);
  return text;
}

void ExpectFilesAreExchangeable(const ConvertedModel& model, KvType kv_type,
                                const std::vector<size_t>& numbers_of_ranks) {
  const support::TemporaryDirectory folder;
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), Options(kv_type)));
  const std::string of_one = folder.path() / "one";
  const std::vector<int32_t> text = Save(*alone, of_one);
  for (const size_t num_ranks : numbers_of_ranks) {
    SCOPED_TRACE(std::to_string(num_ranks) + " ranks, " + std::string(KvTypeName(kv_type)));
    const std::string of_ranks = folder.path() / ("ranks" + std::to_string(num_ranks));
    RankedEngines ranked(model.path(), std::vector<double>(num_ranks, 1.0), Options(kv_type));
    EXPECT_EQ(Load(ranked.engine(), of_one), text);
    EXPECT_EQ(Save(ranked.engine(), of_ranks), text);
    Unwrap(ranked.Stop());
    EXPECT_EQ(Load(*alone, of_ranks), text);
    RankedEngines others(model.path(), {1, 1}, Options(kv_type));
    EXPECT_EQ(Load(others.engine(), of_ranks), text);
    Unwrap(others.Stop());
  }
}

TEST(RankedSession, FilesAreExchangeable) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    if (support::IsEmulated()) {
      ExpectFilesAreExchangeable(model, type, {3});
    } else {
      ExpectFilesAreExchangeable(model, type, {2, 3, 4});
    }
  }
}

// Some layers keep the last tokens only.
TEST(RankedSession, FilesOfWindowsAreExchangeable) {
  const ConvertedModel model(support::SpecMinistral(), {.weights = Scheme::kF32});
  ExpectFilesAreExchangeable(model, KvType::kF16, {3});
}

// In int8, offsets are subtracted from keys.
TEST(RankedSession, FilesOfBiasesAreExchangeable) {
  const ConvertedModel model(support::SpecQwen2(), {.weights = Scheme::kF32});
  ExpectFilesAreExchangeable(model, KvType::kInt8, {2});
}

// States of recurrent layers are divided by channels.
TEST(RankedSession, FilesOfShortConvolutionsAreExchangeable) {
  support::FamilyCheckpoint family = support::FamilyNamed("Lfm2");
  nlohmann::json config = nlohmann::json::parse(family.config_json);
  config["max_position_embeddings"] = 256;
  family.config_json = config.dump();
  const ConvertedModel model(family, {.weights = Scheme::kF32});
  ExpectFilesAreExchangeable(model, KvType::kF16, {2, 3});
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// What the keys and values of all ranks are together, bit by bit.
TEST(RankedSession, AFileThatIsSavedAgainIsTheSame) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  const support::TemporaryDirectory folder;
  const std::string first = folder.path() / "first";
  const std::string second = folder.path() / "second";
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), Options(KvType::kInt8)));
  Save(*alone, first);
  RankedEngines ranked(model.path(), std::vector<double>(4, 1.0), Options(KvType::kInt8));
  const std::unique_ptr<Session> session = ranked.engine().NewSession();
  Unwrap(LoadSession(first, SessionContent::kText, ranked.engine(), *session));
  Unwrap(SaveSession(second, SessionContent::kText, {}, *session, kSavedTokens, ranked.engine()));
  Unwrap(ranked.Stop());
  EXPECT_EQ(BytesOf(second), BytesOf(first));
}

// On rank 0, all sessions exchange their rows by the same memory.
TEST(RankedSession, SeveralAreSavedAndLoadedAtOnce) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  const support::TemporaryDirectory folder;
  EngineOptions options = Options(KvType::kF16);
  options.num_sequences = 3;
  options.context_tokens *= options.num_sequences;
  RankedEngines ranked(model.path(), {1, 1}, options);
  Engine& engine = ranked.engine();
  const auto path_of = [&](size_t thread, const char* name) {
    return folder.path() / (name + std::to_string(thread));
  };
  std::vector<std::unique_ptr<Session>> sessions;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<int32_t> prompt = Prompt();
    prompt.front() += static_cast<int32_t>(i);
    sessions.push_back(engine.NewSession());
    Unwrap(Turn(*sessions.back()).Prefill(prompt));
    Unwrap(SaveSession(path_of(i, "alone"), SessionContent::kText, {}, *sessions[i], kPromptTokens,
                       engine));
  }
  ASSERT_NE(BytesOf(path_of(0, "alone")), BytesOf(path_of(1, "alone")));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        Unwrap(SaveSession(path_of(i, "together"), SessionContent::kText, {}, *sessions[i],
                           kPromptTokens, engine));
        EXPECT_EQ(BytesOf(path_of(i, "together")), BytesOf(path_of(i, "alone")));
      }
    });
  }
  // One that reads meanwhile, and what it has read is right.
  const std::unique_ptr<Session> reader = engine.NewSession();
  for (int round = 0; round < 20; ++round) {
    Unwrap(LoadSession(path_of(0, "alone"), SessionContent::kText, engine, *reader));
  }
  for (std::thread& thread : threads) thread.join();
  const std::string again = folder.path() / "again";
  Unwrap(SaveSession(again, SessionContent::kText, {}, *reader, kPromptTokens, engine));
  EXPECT_EQ(BytesOf(again), BytesOf(path_of(0, "alone")));
  Unwrap(ranked.Stop());
}

TEST(RankedSession, RanksGoOnAfterADamagedFile) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  const support::TemporaryDirectory folder;
  const std::string path = folder.path() / "session";
  RankedEngines ranked(model.path(), {1, 1}, Options(KvType::kF16));
  const std::vector<int32_t> text = Save(ranked.engine(), path);
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-5, std::ios::end);
    file.put('x');
  }
  const std::unique_ptr<Session> session = ranked.engine().NewSession();
  const auto loaded = LoadSession(path, SessionContent::kText, ranked.engine(), *session);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), ErrorCode::kInvalidFile);
  EXPECT_EQ(Save(ranked.engine(), path), text);
  Unwrap(ranked.Stop());
}

}  // namespace
}  // namespace cria::ranks
