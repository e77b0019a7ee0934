#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "llm/completion.h"
#include "llm/tiny_engine.h"
#include "server/api/api.h"
#include "server/api/one_model.h"
#include "server/requests/json_body.h"
#include "server/work/work_queue.h"

namespace cria::server {

// An answer that is recorded.
class RecordedAnswer final : public HttpAnswer {
 public:
  void Send(int sent_status, std::string_view type, std::string text,
            std::span<const Header> sent_headers) override {
    const std::lock_guard lock(mutex_);
    Take(sent_status, type, sent_headers);
    body = std::move(text);
    Over();
  }
  void Begin(int sent_status, std::string_view type,
             std::span<const Header> sent_headers) override {
    const std::lock_guard lock(mutex_);
    Take(sent_status, type, sent_headers);
    is_streamed = true;
  }
  bool Write(std::string_view bytes) override {
    {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(is_streamed && !is_over_);
      body += bytes;
    }
    if (on_write) on_write(*this);
    return !gone_;
  }
  void End() override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(is_streamed && !is_over_);
    Over();
  }
  const std::atomic<bool>& gone() const override { return gone_; }

  void Leave() {
    gone_ = true;
    gone_.notify_all();
  }
  void AwaitEnd() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_; });
  }
  bool is_over() {
    const std::lock_guard lock(mutex_);
    return is_over_;
  }

  Json json() const { return Json::parse(body); }
  // The values of a stream, without [DONE], which must be at the end of server-sent events.
  std::vector<Json> values() const {
    std::vector<Json> values;
    std::istringstream lines(body);
    bool is_done = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      EXPECT_FALSE(is_done);
      if (line.starts_with("data: ")) line.erase(0, 6);
      is_done = line == "[DONE]";
      if (!is_done) values.push_back(Json::parse(line));
    }
    EXPECT_EQ(is_done, content_type == "text/event-stream");
    return values;
  }

  struct Event {
    std::string name;
    Json data;
  };
  // The events of a stream that have names, which are the types of their values.
  std::vector<Event> events() const {
    std::vector<Event> events;
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("event: ")) events.push_back({line.substr(7), {}});
      if (line.starts_with("data: ")) events.back().data = Json::parse(line.substr(6));
    }
    for (const Event& event : events) EXPECT_EQ(event.data["type"], event.name);
    return events;
  }

  // Read after AwaitEnd.
  int status = 0;
  std::string content_type;
  std::string body;
  std::vector<Header> headers;
  bool is_streamed = false;
  std::function<void(RecordedAnswer&)> on_write;  // After each Write, on its thread.

 private:
  void Take(int sent_status, std::string_view type, std::span<const Header> sent_headers) {
    EXPECT_EQ(status, 0) << "it is answered twice";
    status = sent_status;
    content_type = type;
    headers.assign(sent_headers.begin(), sent_headers.end());
  }
  void Over() {
    is_over_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::atomic<bool> gone_ = false;
};

// A chat template with tools and reasoning, in the manner of Qwen's.
inline constexpr const char* kToolTemplate =
    "{% if tools %}<tools>{% for t in tools %}{{ t | tojson }}{% endfor %}</tools> Write "
    "<tool_call>.\n{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}"
    "{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}\n"
    "{% endfor %}{% if add_generation_prompt %}[assistant]"
    "{% if enable_thinking is defined and enable_thinking %}<think>{% else %}<think></think>"
    "{% endif %}{% endif %}";

// The API over a small random model with two sequences.
class ApiTest : public testing::Test {
 protected:
  static constexpr size_t kContextTokens = 2048;

  static void SetUpTestSuite() {
    ConvertOptions conversion = {.weights = Scheme::kQc8w};
    conversion.chat_template = ChatTemplateSource{kToolTemplate, "the test's template"};
    model_ = std::make_unique<TinyModelFile>(support::SpecGqa(), kContextTokens, conversion);
  }
  static void TearDownTestSuite() { model_.reset(); }

  explicit ApiTest(size_t num_sequences = 2, size_t max_waiting = 8,
                   const ThermalOptions& thermal = {})
      : engine_(Load(num_sequences, thermal)),
        models_(OneModel(*engine_, "tiny")),
        work_(num_sequences, max_waiting),
        api_(*models_, work_, {.slot_save_path = folder_.path(), .version = "1.2.3"}) {}
  ~ApiTest() override { work_.Close(std::chrono::milliseconds(0)); }

  static std::unique_ptr<Engine> Load(size_t num_sequences, const ThermalOptions& thermal = {}) {
    return Unwrap(Engine::Load(model_->path(), {.num_threads = 1,
                                                .context_tokens = kContextTokens,
                                                .num_sequences = num_sequences,
                                                .max_constraints = num_sequences,
                                                .thermal = thermal}));
  }

  std::shared_ptr<RecordedAnswer> Begin(const std::string& method, const std::string& path,
                                        std::string body = "", const std::string& query = "") {
    auto answer = std::make_shared<RecordedAnswer>();
    api_.Handle({.method = method,
                 .path = path,
                 .query = query,
                 .body = std::move(body),
                 .content_type = "application/json"},
                answer);
    return answer;
  }
  std::shared_ptr<RecordedAnswer> Get(const std::string& path) {
    auto answer = Begin("GET", path);
    answer->AwaitEnd();
    return answer;
  }
  std::shared_ptr<RecordedAnswer> Post(const std::string& path, const Json& body,
                                       const std::string& query = "") {
    auto answer = Begin("POST", path, Written(body), query);
    answer->AwaitEnd();
    return answer;
  }

  // A streamed answer that takes long; its first part has come.
  std::shared_ptr<RecordedAnswer> BeginLongAnswer() {
    return BeginStream("/v1/chat/completions", Chat("Who?", 1900));
  }
  std::shared_ptr<RecordedAnswer> BeginStream(const std::string& path, Json request) {
    auto answer = std::make_shared<RecordedAnswer>();
    const auto has_begun = std::make_shared<std::atomic<bool>>(false);
    answer->on_write = [has_begun](RecordedAnswer&) {
      *has_begun = true;
      has_begun->notify_all();
    };
    request["stream"] = true;
    request["ignore_eos"] = true;
    api_.Handle({.method = "POST", .path = path, .body = Written(request)}, answer);
    has_begun->wait(false);
    return answer;
  }

  // A greedy answer of so many tokens.
  static Json Chat(const std::string& question = "Who?", size_t max_tokens = 12) {
    return {{"model", "tiny"},
            {"messages", Json::array({{{"role", "user"}, {"content", question}}})},
            {"temperature", 0},
            {"max_tokens", max_tokens}};
  }

  // What one session alone writes after this prompt.
  std::string Alone(const std::string& prompt, size_t max_tokens) {
    const auto engine = Load(1);
    const auto session = engine->NewSession();
    Sampler sampler = Unwrap(Sampler::Create({.temperature = 0.0f}, session->vocab_size()));
    std::string text;
    Unwrap(Complete(*session, engine->tokenizer(), sampler, prompt,
                    {.generation = {.max_tokens = max_tokens,
                                    .stop_token_ids = engine->file().stop_token_ids()}},
                    [&](std::string_view piece) { text += piece; }));
    return text;
  }
  static std::string Rendered(const std::string& question) {
    // As in transformers, the line end behind a block is not written.
    return "[user]" + question + "[assistant]<think></think>";
  }

  static std::unique_ptr<TinyModelFile> model_;
  support::TemporaryDirectory folder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ModelStore> models_;
  WorkQueue work_;
  Api api_;
};

inline std::unique_ptr<TinyModelFile> ApiTest::model_;

}  // namespace cria::server
