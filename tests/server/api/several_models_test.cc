// A server of several models, of which one fits at a time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/api/api_fixture.h"
#include "server/api/engine_source.h"

namespace cria::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using State = ModelStore::State;

constexpr size_t kContext = 512;
constexpr platform::MemoryUsage kProgram = {
    .private_bytes = 1 << 20, .file_mapped_bytes = 1 << 20, .virtual_bytes = 1 << 24};

EngineOptions OptionsOfEngine(size_t context_tokens = kContext) {
  return {
      .num_threads = 1, .context_tokens = context_tokens, .num_sequences = 2, .max_constraints = 2};
}

class SeveralModelsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const Scheme scheme : {Scheme::kQc8w, Scheme::kF32}) {
      ConvertOptions conversion = {.weights = scheme};
      conversion.chat_template = ChatTemplateSource{kToolTemplate, "the test's template"};
      files_.push_back(std::make_unique<TinyModelFile>(support::SpecGqa(), kContext, conversion));
    }
  }
  static void TearDownTestSuite() { files_.clear(); }

  SeveralModelsTest() {
    for (size_t i = 0; i < kNames.size(); ++i) {
      std::filesystem::copy_file(files_[i]->path(), PathOf(kNames[i]));
      const auto engine = Unwrap(Engine::Load(PathOf(kNames[i]), BesideNothing()));
      one_fits_ = std::max(one_fits_, engine->memory_plan().peak_bytes());
    }
    Open(one_fits_);
  }
  ~SeveralModelsTest() override { Close(); }

  static EngineOptions BesideNothing() {
    EngineOptions options = OptionsOfEngine();
    options.program = kProgram;
    return options;
  }
  std::string PathOf(const std::string& name) const { return folder_ / (name + ".cria"); }

  void Open(std::optional<uint64_t> limit_bytes, size_t context_tokens = kContext) {
    Close();
    std::vector<ModelStore::NamedSource> sources;
    for (const std::string& name : kNames) {
      EngineSource::Options options = {.name = name,
                                       .path = PathOf(name),
                                       .engine = OptionsOfEngine(context_tokens),
                                       .is_only = false};
      options.engine.memory_limit_bytes = limit_bytes;
      options.load = [this](const std::string& path, const EngineOptions& engine_options) {
        if (on_load) on_load();
        return Engine::Load(path, engine_options);
      };
      auto source = std::make_unique<EngineSource>(std::move(options));
      static_cast<void>(source->Inspect());
      sources.push_back({name, std::move(source)});
    }
    models_ =
        std::make_unique<ModelStore>(std::move(sources), ModelStore::Options{.program = kProgram});
    work_ = std::make_unique<WorkQueue>(2, 32);
    api_ = std::make_unique<Api>(*models_, *work_, ApiOptions{.version = "1.2.3"});
  }
  void Close() {
    if (models_ != nullptr) models_->Close();
    if (work_ != nullptr) work_->Close(std::chrono::milliseconds(0));
    api_.reset();
    work_.reset();
    models_.reset();
  }

  std::shared_ptr<RecordedAnswer> Begin(
      const std::string& method, const std::string& path, std::string body = "",
      const std::string& query = "",
      std::shared_ptr<RecordedAnswer> answer = std::make_shared<RecordedAnswer>()) {
    api_->Handle({.method = method, .path = path, .query = query, .body = std::move(body)}, answer);
    return answer;
  }
  std::shared_ptr<RecordedAnswer> Get(const std::string& path, const std::string& query = "") {
    auto answer = Begin("GET", path, "", query);
    answer->AwaitEnd();
    return answer;
  }
  std::shared_ptr<RecordedAnswer> Post(const std::string& path, const Json& body) {
    auto answer = Begin("POST", path, Written(body));
    answer->AwaitEnd();
    return answer;
  }
  Json PostOk(const std::string& path, const Json& body) {
    const auto answer = Post(path, body);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->json();
  }

  static Json Chat(const std::string& model, const std::string& question = "Who?",
                   size_t max_tokens = 8) {
    return {{"model", model},
            {"messages", Json::array({{{"role", "user"}, {"content", question}}})},
            {"temperature", 0},
            {"max_tokens", max_tokens}};
  }
  std::string Ask(const std::string& model, const std::string& question = "Who?") {
    const Json answer = PostOk("/v1/chat/completions", Chat(model, question));
    EXPECT_EQ(answer["model"], model);
    return answer["choices"][0]["message"]["content"];
  }
  // What a server with this model alone answers.
  std::string Alone(const std::string& model, const std::string& question = "Who?") {
    const auto engine = Unwrap(Engine::Load(PathOf(model), OptionsOfEngine()));
    const auto models = OneModel(*engine, model);
    WorkQueue work(2, 8);
    Api api(*models, work, {});
    auto answer = std::make_shared<RecordedAnswer>();
    api.Handle(
        {.method = "POST", .path = "/v1/chat/completions", .body = Written(Chat("any", question))},
        answer);
    answer->AwaitEnd();
    work.Close(std::chrono::milliseconds(0));
    return answer->json()["choices"][0]["message"]["content"];
  }

  // A streamed answer whose first part has come; it does not go on before its client leaves.
  std::shared_ptr<RecordedAnswer> BeginLongAnswer(const std::string& model) {
    auto answer = std::make_shared<RecordedAnswer>();
    const auto has_begun = std::make_shared<std::atomic<bool>>(false);
    answer->on_write = [has_begun](const RecordedAnswer& self) {
      *has_begun = true;
      has_begun->notify_all();
      self.gone().wait(false);
    };
    Json request = Chat(model, "Who?", 400);
    request["stream"] = true;
    request["ignore_eos"] = true;
    Begin("POST", "/v1/chat/completions", Written(request), "", answer);
    has_begun->wait(false);
    return answer;
  }

  State StateOf(size_t index) const { return models_->figures(index).state; }
  void AwaitState(size_t index, State state) const {
    while (StateOf(index) != state) std::this_thread::yield();
  }
  // A request gives its model back only after its answer was sent; the time begins then.
  ModelStore::Clock::time_point AwaitExpiry(size_t index) const {
    while (true) {
      if (const auto expiry = models_->figures(index).expiry) return *expiry;
      std::this_thread::yield();
    }
  }
  void AwaitWaiting(size_t count) const {
    while (models_->num_waiting() != count) std::this_thread::yield();
  }
  std::vector<std::string> Statuses() {
    std::vector<std::string> statuses;
    const Json list = Get("/v1/models")->json();
    for (const Json& model : list["data"]) {
      statuses.push_back(model["status"]["value"]);
    }
    return statuses;
  }

  inline static const std::vector<std::string> kNames = {"a", "b"};
  inline static std::vector<std::unique_ptr<TinyModelFile>> files_;
  const support::TemporaryDirectory folder_;
  uint64_t one_fits_ = 0;
  std::function<void()> on_load;
  std::unique_ptr<ModelStore> models_;
  std::unique_ptr<WorkQueue> work_;
  std::unique_ptr<Api> api_;
};

TEST_F(SeveralModelsTest, RequestsChooseAndEachAnswerIsAsAlone) {
  const std::string a = Alone("a");
  const std::string b = Alone("b");
  EXPECT_THAT(Statuses(), ElementsAre("unloaded", "unloaded"));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Ask("a"), a);
    EXPECT_THAT(Statuses(), ElementsAre("loaded", "unloaded"));
    EXPECT_EQ(Ask("b"), b);
    EXPECT_THAT(Statuses(), ElementsAre("unloaded", "loaded"));
    EXPECT_LE(models_->planned().private_bytes + models_->planned().file_mapped_bytes, one_fits_);
  }
  EXPECT_EQ(models_->figures(0).num_loads, 4u);
  Json large = Chat("a");
  large["metadata"] = std::string(20'000, 'x');
  EXPECT_EQ(PostOk("/v1/chat/completions", large)["model"], "a");
}

TEST_F(SeveralModelsTest, BothStayIfBothFit) {
  Open(2 * one_fits_);
  Ask("a");
  Ask("b");
  Ask("a");
  EXPECT_THAT(Statuses(), ElementsAre("loaded", "loaded"));
  EXPECT_EQ(models_->figures(0).num_loads, 1u);
}

TEST_F(SeveralModelsTest, EveryPathTakesTheModel) {
  EXPECT_EQ(
      PostOk("/v1/completions", {{"model", "b"}, {"prompt", "a"}, {"max_tokens", 1}})["model"],
      "b");
  EXPECT_EQ(PostOk("/v1/embeddings", {{"model", "a"}, {"input", "a"}})["model"], "a");
  EXPECT_EQ(PostOk("/completion", {{"model", "b"}, {"prompt", "a"}, {"n_predict", 1}})["model"],
            "b");
  EXPECT_EQ(
      PostOk("/v1/responses", {{"model", "b"}, {"input", "a"}, {"max_output_tokens", 1}})["model"],
      "b");
  EXPECT_EQ(PostOk("/v1/messages",
                   {{"model", "a"},
                    {"max_tokens", 1},
                    {"messages", Json::array({{{"role", "user"}, {"content", "a"}}})}})["model"],
            "a");
  EXPECT_EQ(PostOk("/api/generate", {{"model", "b:latest"},
                                     {"prompt", "a"},
                                     {"stream", false},
                                     {"options", {{"num_predict", 1}}}})["model"],
            "b");
  EXPECT_FALSE(PostOk("/tokenize", {{"model", "a"}, {"content", "a b"}})["tokens"].empty());
  EXPECT_EQ(Get("/props", "model=b")->json()["model_alias"], "b");
  EXPECT_EQ(Get("/props")->json()["role"], "router");
  EXPECT_EQ(Get("/slots", "x=y&model=%61")->json().size(), 2u);
  EXPECT_EQ(PostOk("/api/show", {{"name", "a"}})["capabilities"][0], "completion");
  EXPECT_EQ(Get("/health")->status, 200);
}

// The cache may have more tokens than one sequence can have.
TEST_F(SeveralModelsTest, TheContextIsThatOfOneSequence) {
  for (const size_t context : {kContext / 2, 2 * kContext}) {
    Open(std::nullopt, context);
    const size_t longest = std::min(context, kContext);
    EXPECT_EQ(Get("/v1/models/b")->json()["meta"]["n_ctx"], longest);
    EXPECT_EQ(Get("/props", "model=b")->json()["default_generation_settings"]["n_ctx"], longest);
    EXPECT_EQ(Get("/v1/models/b")->json()["meta"]["n_ctx"], longest);
    EXPECT_EQ(Get("/v1/models/b")->json()["meta"]["n_ctx_train"], kContext);
    EXPECT_EQ(Get("/api/ps")->json()["models"][0]["context_length"], longest);
    const Json info = PostOk("/api/show", {{"name", "b"}})["model_info"];
    const std::string family = info["general.architecture"];
    EXPECT_EQ(info[family + ".context_length"], kContext);
  }
}

TEST_F(SeveralModelsTest, AnUnknownNameIsRefused) {
  const auto unknown = Post("/v1/chat/completions", Chat("c"));
  EXPECT_EQ(unknown->status, 404);
  EXPECT_EQ(unknown->json()["error"]["code"], "model_not_found");
  EXPECT_THAT(unknown->body, HasSubstr(R"(this server has \"a\", \"b\")"));
  Json large = Chat("c");
  large["metadata"] = std::string(20'000, 'x');
  EXPECT_EQ(Post("/v1/chat/completions", large)->status, 404);
  EXPECT_EQ(Get("/v1/models/c")->status, 404);
  EXPECT_EQ(Post("/api/show", {{"model", "c"}})->status, 404);
  EXPECT_THAT(Post("/api/chat", {{"model", "c"}})->json()["error"], HasSubstr("no model"));
  Json without = Chat("a");
  without.erase("model");
  const auto missing = Post("/v1/chat/completions", without);
  EXPECT_EQ(missing->status, 400);
  EXPECT_EQ(missing->json()["error"]["param"], "model");
  EXPECT_EQ(Get("/slots")->status, 400);
  EXPECT_EQ(Begin("POST", "/v1/chat/completions", R"({"model":"a",)")->status, 400);
  EXPECT_THAT(Statuses(), ElementsAre("unloaded", "unloaded"));
}

TEST_F(SeveralModelsTest, OllamasTimeToStay) {
  const auto chat = [&](const Json& keep_alive) {
    return PostOk("/api/chat", {{"model", "a"},
                                {"stream", false},
                                {"keep_alive", keep_alive},
                                {"options", {{"num_predict", 1}}},
                                {"messages", {{{"role", "user"}, {"content", "a"}}}}});
  };
  const auto loaded = [&] { return Get("/api/ps")->json()["models"]; };
  EXPECT_TRUE(loaded().empty());
  chat(-1);
  ASSERT_EQ(loaded().size(), 1u);
  EXPECT_EQ(loaded()[0]["name"], "a");
  EXPECT_GT(loaded()[0]["size"], 0);
  EXPECT_FALSE(models_->figures(0).expiry);
  chat("1h30m");
  const auto later = ModelStore::Clock::now() + std::chrono::minutes(80);
  EXPECT_GT(AwaitExpiry(0), later);
  chat(0);
  AwaitState(0, State::kUnloaded);
  EXPECT_TRUE(loaded().empty());
  EXPECT_EQ(PostOk("/api/generate", {{"model", "b"}})["done_reason"], "load");
  EXPECT_EQ(StateOf(1), State::kLoaded);
  EXPECT_EQ(PostOk("/api/generate", {{"model", "b"}, {"keep_alive", 0}})["done_reason"], "unload");
  AwaitState(1, State::kUnloaded);
  EXPECT_EQ(PostOk("/api/chat", {{"model", "b"}, {"keep_alive", "0s"}})["done_reason"], "unload");
  EXPECT_EQ(models_->figures(1).num_loads, 1u);
  const auto wrong = Post("/api/chat", {{"model", "a"}, {"keep_alive", "soon"}});
  EXPECT_EQ(wrong->status, 400);
  EXPECT_THAT(wrong->body, HasSubstr("keep_alive"));
  EXPECT_EQ(Get("/api/tags")->json()["models"].size(), 2u);
}

TEST_F(SeveralModelsTest, LoadAndUnloadAsLlamaServerHasThem) {
  EXPECT_EQ(PostOk("/models/load", {{"model", "b"}})["success"], true);
  EXPECT_THAT(Statuses(), ElementsAre("unloaded", "loaded"));
  EXPECT_EQ(PostOk("/models/unload", {{"model", "b"}})["success"], true);
  AwaitState(1, State::kUnloaded);
  EXPECT_EQ(Post("/models/load", {{"model", "c"}})->status, 404);
  EXPECT_EQ(Post("/models/unload", {{"model", "c"}})->status, 404);
  EXPECT_EQ(Post("/models/unload", Json::object())->status, 400);
}

TEST_F(SeveralModelsTest, ARequestWaitsWhileAnotherModelAnswers) {
  const std::string b = Alone("b");
  const auto long_answer = BeginLongAnswer("a");
  const auto waiting = Begin("POST", "/v1/chat/completions", Written(Chat("b")));
  AwaitWaiting(1);
  EXPECT_THAT(Statuses(), ElementsAre("loaded", "unloaded"));
  long_answer->Leave();
  waiting->AwaitEnd();
  EXPECT_EQ(waiting->status, 200) << waiting->body;
  EXPECT_EQ(waiting->json()["choices"][0]["message"]["content"], b);
  EXPECT_EQ(StateOf(0), State::kUnloaded);
}

TEST_F(SeveralModelsTest, AClientThatLeavesWhileItWaitsLoadsNothing) {
  const auto long_answer = BeginLongAnswer("a");
  const auto waiting = Begin("POST", "/v1/chat/completions", Written(Chat("b")));
  AwaitWaiting(1);
  waiting->Leave();
  AwaitWaiting(0);
  long_answer->Leave();
  Ask("a");
  EXPECT_EQ(models_->figures(1).num_loads, 0u);
  EXPECT_EQ(models_->figures(0).num_loads, 1u);
}

TEST_F(SeveralModelsTest, UnloadingLetsAnAnswerEnd) {
  auto answer = std::make_shared<RecordedAnswer>();
  std::atomic<bool> has_begun = false;
  answer->on_write = [&](RecordedAnswer&) {
    if (has_begun.exchange(true)) return;
    auto unload = std::make_shared<RecordedAnswer>();
    api_->Handle({.method = "POST", .path = "/models/unload", .body = Written({{"model", "a"}})},
                 unload);
    EXPECT_TRUE(unload->is_over());
    EXPECT_EQ(unload->status, 200);
    EXPECT_EQ(StateOf(0), State::kLoaded);
  };
  Json request = Chat("a", "Who?", 40);
  request["stream"] = true;
  request["ignore_eos"] = true;
  Begin("POST", "/v1/chat/completions", Written(request), "", answer)->AwaitEnd();
  EXPECT_EQ(answer->values().back()["choices"][0]["finish_reason"], "length");
  AwaitState(0, State::kUnloaded);
}

TEST_F(SeveralModelsTest, ABrokenOrMissingFileIsTheRequestsErrorAlone) {
  std::ofstream(PathOf("a"), std::ios::trunc) << "this is no model";
  const auto broken = Post("/v1/chat/completions", Chat("a"));
  EXPECT_EQ(broken->status, 500);
  EXPECT_EQ(broken->json()["error"]["code"], "model_not_loaded");
  EXPECT_THAT(broken->body, HasSubstr(R"(the model \"a\" cannot be loaded)"));
  const Json listed = Get("/v1/models/a")->json();
  EXPECT_EQ(listed["status"]["failed"], true);
  EXPECT_EQ(Ask("b"), Alone("b"));
  std::filesystem::remove(PathOf("a"));
  EXPECT_EQ(Post("/v1/chat/completions", Chat("a"))->status, 500);
  // No other model went for it.
  EXPECT_EQ(models_->figures(1).num_loads, 1u);
  EXPECT_EQ(StateOf(1), State::kLoaded);
  std::filesystem::copy_file(files_[0]->path(), PathOf("a"));
  EXPECT_EQ(Ask("a"), Alone("a"));
  EXPECT_THAT(Get("/v1/models/a")->body, Not(HasSubstr("failed")));
}

TEST_F(SeveralModelsTest, AModelThatDoesNotFitAloneIsRefusedByName) {
  Open(kProgram.private_bytes + kProgram.file_mapped_bytes + (1 << 16));
  const auto refused = Post("/v1/chat/completions", Chat("b"));
  EXPECT_EQ(refused->status, 500);
  EXPECT_THAT(refused->body, HasSubstr(R"(the model \"b\" cannot be loaded: the model needs )"));
  EXPECT_EQ(StateOf(1), State::kUnloaded);
}

TEST_F(SeveralModelsTest, FiguresHaveTheNamesOfModels) {
  Ask("a");
  Ask("b");
  Ask("b", "What?");
  const std::string text = Get("/metrics")->body;
  EXPECT_THAT(text, HasSubstr("cria_answers_total{model=\"a\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cria_answers_total{model=\"b\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("cria_model_loaded{model=\"a\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("cria_model_loaded{model=\"b\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("cria_model_loads_total{model=\"b\"} 1\n"));
}

TEST_F(SeveralModelsTest, TheEndOfTheServerEndsWaiting) {
  const auto long_answer = BeginLongAnswer("a");
  const auto waiting = Begin("POST", "/v1/chat/completions", Written(Chat("b")));
  AwaitWaiting(1);
  models_->Close();
  waiting->AwaitEnd();
  EXPECT_EQ(waiting->status, 503);
  EXPECT_THAT(waiting->body, HasSubstr("shutting_down"));
  EXPECT_FALSE(long_answer->is_over());
  long_answer->Leave();
}

TEST_F(SeveralModelsTest, TheEndOfTheServerWhileAModelIsLoaded) {
  std::atomic<bool> loads = false;
  on_load = [&] {
    loads = true;
    while (models_->num_waiting() != 2) std::this_thread::yield();
    models_->Close();
  };
  const auto first = Begin("POST", "/v1/chat/completions", Written(Chat("a")));
  while (!loads) std::this_thread::yield();
  const auto second = Begin("POST", "/v1/chat/completions", Written(Chat("b")));
  first->AwaitEnd();
  second->AwaitEnd();
  EXPECT_EQ(first->status, 503);
  EXPECT_EQ(second->status, 503);
}

TEST_F(SeveralModelsTest, ManyClientsOfBothAllGetTheirAnswers) {
  const std::array<std::string, 2> alone = {Alone("a"), Alone("b")};
  std::vector<std::jthread> clients;
  std::atomic<int> num_right = 0;
  for (unsigned client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (unsigned i = 0; i < 6; ++i) {
        const size_t index = (client + i / 2) % 2;
        Json request = Chat(kNames[index]);
        if (client % 4 == 3) request["keep_alive"] = 0;
        const auto answer = Begin("POST", "/v1/chat/completions", Written(request));
        answer->AwaitEnd();
        EXPECT_EQ(answer->status, 200) << answer->body;
        if (answer->status != 200) continue;
        const Json json = answer->json();
        if (json["choices"][0]["message"]["content"] == alone[index]) ++num_right;
      }
    });
  }
  clients.clear();
  EXPECT_EQ(num_right, 48);
}

}  // namespace
}  // namespace cria::server
