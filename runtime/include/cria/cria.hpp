// The C API (cria.h) for C++17: handles that free themselves, std::string and std::function. It
// needs neither exceptions nor RTTI; errors are values. The rules for threads and lifetimes are
// those of cria.h. Texts may contain zero bytes, except paths. Callbacks must not throw.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cria/cria.h"

namespace cria {

struct Error {
  cria_status status = CRIA_OK;
  std::string message;
};

// A value or an error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  // Whether there is a value.
  explicit operator bool() const { return error_.status == CRIA_OK; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  const Error& error() const { return error_; }

 private:
  T value_{};
  Error error_;
};

struct ModelOptions : cria_model_options {
  ModelOptions() : cria_model_options CRIA_MODEL_OPTIONS_INIT {}
};

// The members of this class replace stop_strings, logit_bias and constraint of
// cria_generation_options.
struct GenerationOptions : cria_generation_options {
  GenerationOptions() : cria_generation_options CRIA_GENERATION_OPTIONS_INIT {}

  std::vector<std::string> stop;
  std::vector<cria_logit_bias> bias;
  std::string constraint_text;  // Of constraint_kind.
};

struct Message {
  std::string role;  // "system", "user", "assistant", or another that the chat template knows.
  std::string content;
};

// The text of an answer, and its figures.
struct Reply : cria_result {
  Reply() : cria_result CRIA_RESULT_INIT {}
  std::string text;
};

// Callbacks return whether to go on, except NoticeCallback.
using TextCallback = std::function<bool(std::string_view text)>;
using TokenCallback = std::function<bool(const cria_token& token)>;
using PromptCallback = std::function<bool(uint32_t done_tokens, uint32_t total_tokens)>;
using ProgressCallback = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;
using NoticeCallback = std::function<void(std::string_view sentence)>;

// What a call tells while it runs. A function alone is `on_text`.
struct Callbacks {
  Callbacks() = default;
  template <typename Function,
            typename = std::enable_if_t<std::is_constructible_v<TextCallback, Function> &&
                                        !std::is_same_v<std::decay_t<Function>, Callbacks>>>
  Callbacks(Function&& function) : on_text(std::forward<Function>(function)) {}

  TextCallback on_text;
  TokenCallback on_token;
  PromptCallback on_prompt;
};

namespace internal {

inline Error ErrorOf(cria_status status) {
  return status == CRIA_OK ? Error{} : Error{status, cria_error_message()};
}

// The options with the arrays of the C API. It must outlive the call.
class COptions {
 public:
  explicit COptions(const GenerationOptions& options) : options_(options) {
    for (const std::string& text : options.stop) stop_.push_back({text.data(), text.size()});
    options_.stop_strings = stop_.data();
    options_.num_stop_strings = stop_.size();
    options_.logit_bias = options.bias.data();
    options_.num_logit_bias = options.bias.size();
    options_.constraint = options.constraint_text.data();
    options_.constraint_bytes = options.constraint_text.size();
  }
  COptions(const COptions&) = delete;
  COptions& operator=(const COptions&) = delete;

  const cria_generation_options* get() const { return &options_; }

 private:
  cria_generation_options options_;
  std::vector<cria_text> stop_;
};

inline cria_message ToC(const Message& message) {
  return {message.role.data(), message.content.data(), message.role.size(), message.content.size()};
}

inline std::vector<cria_message> ToC(const std::vector<Message>& messages) {
  std::vector<cria_message> c_messages;
  for (const Message& message : messages) c_messages.push_back(ToC(message));
  return c_messages;
}

// Passes on what a call tells, and keeps the text.
class Receiver {
 public:
  explicit Receiver(const Callbacks& callbacks) : callbacks_(callbacks) {
    c_callbacks_.on_text = TakeText;
    if (callbacks.on_token) c_callbacks_.on_token = TakeToken;
    if (callbacks.on_prompt) c_callbacks_.on_prompt = TakePrompt;
    c_callbacks_.data = this;
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  const cria_callbacks* get() const { return &c_callbacks_; }

  // The result of a call that filled `reply`.
  Result<Reply> Finish(cria_status status, Reply reply) {
    if (status != CRIA_OK) return ErrorOf(status);
    reply.text = std::move(text_);
    return reply;
  }

 private:
  static const Callbacks& CallbacksOf(void* data) {
    return static_cast<Receiver*>(data)->callbacks_;
  }
  static int TakeText(const char* text, size_t text_bytes, void* data) noexcept {
    static_cast<Receiver*>(data)->text_.append(text, text_bytes);
    const TextCallback& on_text = CallbacksOf(data).on_text;
    return on_text && !on_text(std::string_view(text, text_bytes)) ? 1 : 0;
  }
  static int TakeToken(const cria_token* token, void* data) noexcept {
    return CallbacksOf(data).on_token(*token) ? 0 : 1;
  }
  static int TakePrompt(uint32_t done_tokens, uint32_t total_tokens, void* data) noexcept {
    return CallbacksOf(data).on_prompt(done_tokens, total_tokens) ? 0 : 1;
  }

  const Callbacks& callbacks_;
  cria_callbacks c_callbacks_ = CRIA_CALLBACKS_INIT;
  std::string text_;
};

// The text that `write(text, capacity, text_bytes)` writes: first its length, then the text.
template <typename Write>
Result<std::string> TextOf(const Write& write) {
  size_t bytes = 0;
  cria_status status = write(nullptr, 0, &bytes);
  std::string text(bytes + 1, '\0');
  if (status == CRIA_OK) status = write(text.data(), text.size(), &bytes);
  if (status != CRIA_OK) return ErrorOf(status);
  text.resize(bytes);
  return text;
}

// The values that `write(values, capacity, count)` writes.
template <typename T, typename Write>
Result<std::vector<T>> ArrayOf(const Write& write) {
  size_t count = 0;
  cria_status status = write(nullptr, 0, &count);
  // One more than needed: with a null pointer, the call would only count.
  std::vector<T> values(count + 1);
  if (status == CRIA_OK) status = write(values.data(), count, &count);
  if (status != CRIA_OK) return ErrorOf(status);
  values.resize(count);
  return values;
}

struct LoadReceiver {
  const ProgressCallback& on_progress;
  const NoticeCallback& on_notice;

  static int Progress(uint64_t done_bytes, uint64_t total_bytes, void* data) noexcept {
    return static_cast<LoadReceiver*>(data)->on_progress(done_bytes, total_bytes) ? 0 : 1;
  }
  static void Notice(const char* sentence, void* data) noexcept {
    static_cast<LoadReceiver*>(data)->on_notice(sentence);
  }
};

}  // namespace internal

// The memory that a model would take, without loading it.
class Plan {
 public:
  struct Part {
    std::string name;
    uint64_t bytes = 0;
    bool is_mapped = false;
  };

  static Result<Plan> Create(const ModelOptions& options) {
    Plan plan;
    cria_plan* handle = nullptr;
    const cria_status status = cria_plan_create(&options, &handle);
    plan.handle_.reset(handle);
    if (status != CRIA_OK) return internal::ErrorOf(status);
    return plan;
  }

  Plan() = default;

  cria_plan_totals totals() const {
    cria_plan_totals totals = CRIA_PLAN_TOTALS_INIT;
    cria_plan_get_totals(get(), &totals);
    return totals;
  }
  cria_model_info info() const {
    cria_model_info info = CRIA_MODEL_INFO_INIT;
    cria_plan_get_info(get(), &info);
    return info;
  }
  std::vector<Part> parts() const {
    std::vector<Part> parts(cria_plan_num_parts(get()));
    for (size_t i = 0; i < parts.size(); ++i) {
      int is_mapped = 0;
      parts[i].name = cria_plan_get_part(get(), i, &parts[i].bytes, &is_mapped);
      parts[i].is_mapped = is_mapped != 0;
    }
    return parts;
  }
  // The status is CRIA_ERROR_OUT_OF_MEMORY if the limits forbid the model; the message says what
  // would fit.
  Error Check() const { return internal::ErrorOf(cria_plan_check(get())); }

  cria_plan* get() const { return handle_.get(); }

 private:
  struct Freeing {
    void operator()(cria_plan* plan) const { cria_plan_free(plan); }
  };
  std::unique_ptr<cria_plan, Freeing> handle_;
};

class Model {
 public:
  static Result<Model> Load(ModelOptions options, const ProgressCallback& on_progress = nullptr,
                            const NoticeCallback& on_notice = nullptr) {
    internal::LoadReceiver receiver{on_progress, on_notice};
    options.on_progress = on_progress ? internal::LoadReceiver::Progress : nullptr;
    options.on_notice = on_notice ? internal::LoadReceiver::Notice : nullptr;
    options.callback_data = &receiver;
    Model model;
    cria_model* handle = nullptr;
    const cria_status status = cria_model_load(&options, &handle);
    model.handle_.reset(handle);
    if (status != CRIA_OK) return internal::ErrorOf(status);
    return model;
  }
  static Result<Model> Load(const std::string& path) {
    ModelOptions options;
    options.path = path.c_str();
    return Load(options);
  }

  // Without a model; assign a loaded one to it.
  Model() = default;

  cria_model_info info() const {
    cria_model_info info = CRIA_MODEL_INFO_INIT;
    cria_model_get_info(get(), &info);
    return info;
  }
  void Cancel() { cria_model_cancel(get()); }

  Result<Reply> Complete(std::string_view prompt, const GenerationOptions& options = {},
                         const Callbacks& callbacks = {}) {
    Reply reply;
    internal::Receiver receiver(callbacks);
    const cria_status status =
        cria_complete_text(get(), prompt.data(), prompt.size(), internal::COptions(options).get(),
                           receiver.get(), &reply);
    return receiver.Finish(status, std::move(reply));
  }
  // The logits of the token after the prompt, one for each token of the vocabulary.
  Result<std::vector<float>> Logits(std::string_view prompt, bool parse_special = false,
                                    const Callbacks& callbacks = {}) {
    const internal::Receiver receiver(callbacks);
    return internal::ArrayOf<float>([&](float* logits, size_t capacity, size_t* count) {
      return cria_get_logits(get(), prompt.data(), prompt.size(), parse_special, receiver.get(),
                             logits, capacity, count);
    });
  }

  // The embedding of a text, as cria_embed.
  Result<std::vector<float>> Embed(std::string_view text, const Callbacks& callbacks = {}) {
    const internal::Receiver receiver(callbacks);
    return internal::ArrayOf<float>([&](float* embedding, size_t capacity, size_t* count) {
      return cria_embed(get(), text.data(), text.size(), receiver.get(), embedding, capacity,
                        count);
    });
  }

  // What the chat template makes of messages. `variables` is a JSON object or "".
  Result<std::string> Render(const std::vector<Message>& messages,
                             bool add_generation_prompt = true,
                             std::string_view variables = {}) const {
    const std::vector<cria_message> c_messages = internal::ToC(messages);
    return internal::TextOf([&](char* text, size_t capacity, size_t* bytes) {
      return cria_render_messages(get(), c_messages.data(), c_messages.size(), variables.data(),
                                  variables.size(), add_generation_prompt, text, capacity, bytes);
    });
  }

  Result<std::vector<int32_t>> Tokenize(std::string_view text, bool add_special = true,
                                        bool parse_special = false) const {
    return internal::ArrayOf<int32_t>([&](int32_t* tokens, size_t capacity, size_t* count) {
      return cria_tokenize_text(get(), text.data(), text.size(), add_special, parse_special, tokens,
                                capacity, count);
    });
  }
  Result<std::string> Detokenize(const std::vector<int32_t>& tokens) const {
    return internal::TextOf([&](char* text, size_t capacity, size_t* bytes) {
      return cria_detokenize(get(), tokens.data(), tokens.size(), text, capacity, bytes);
    });
  }

  // For the functions of cria.h.
  cria_model* get() const { return handle_.get(); }

 private:
  struct Freeing {
    void operator()(cria_model* model) const { cria_model_free(model); }
  };
  std::unique_ptr<cria_model, Freeing> handle_;
};

class Chat {
 public:
  static Result<Chat> Create(const Model& model, std::string_view system_prompt = {},
                             const GenerationOptions& options = {}) {
    std::vector<Message> messages;
    if (!system_prompt.empty()) messages.push_back({"system", std::string(system_prompt)});
    return FromMessages(model, messages, options);
  }
  // Goes on from these messages.
  static Result<Chat> FromMessages(const Model& model, const std::vector<Message>& messages,
                                   const GenerationOptions& options = {}) {
    const std::vector<cria_message> c_messages = internal::ToC(messages);
    Chat chat;
    cria_chat* handle = nullptr;
    const cria_status status =
        cria_chat_create_from_messages(model.get(), c_messages.data(), c_messages.size(),
                                       internal::COptions(options).get(), &handle);
    chat.handle_.reset(handle);
    if (status != CRIA_OK) return internal::ErrorOf(status);
    return chat;
  }

  // A chat that goes on where a saved one was. `*is_context_restored`, which may be null: whether
  // the first answer need not read the messages again.
  static Result<Chat> Load(const Model& model, const std::string& path,
                           const GenerationOptions& options = {},
                           bool* is_context_restored = nullptr) {
    Chat chat;
    cria_chat* handle = nullptr;
    int is_restored = 0;
    const cria_status status = cria_chat_load(
        model.get(), path.c_str(), internal::COptions(options).get(), &handle, &is_restored);
    chat.handle_.reset(handle);
    if (is_context_restored != nullptr) *is_context_restored = is_restored != 0;
    if (status != CRIA_OK) return internal::ErrorOf(status);
    return chat;
  }

  Chat() = default;

  // Writes the chat to a file, for Load.
  Error Save(const std::string& path) const {
    return internal::ErrorOf(cria_chat_save(get(), path.c_str()));
  }

  Result<Reply> Send(std::string_view message, const Callbacks& callbacks = {}) {
    return Send(Message{"user", std::string(message)}, callbacks);
  }
  // The same for a message of any role except assistant.
  Result<Reply> Send(const Message& message, const Callbacks& callbacks = {}) {
    const cria_message c_message = internal::ToC(message);
    return Generate(callbacks, [&](const cria_callbacks* receiver, cria_result* result) {
      return cria_chat_answer(get(), &c_message, receiver, result);
    });
  }
  // Answers the last message.
  Result<Reply> Answer(const Callbacks& callbacks = {}) {
    return Generate(callbacks, [&](const cria_callbacks* receiver, cria_result* result) {
      return cria_chat_answer(get(), nullptr, receiver, result);
    });
  }
  // Replaces the answer at the end by another one.
  Result<Reply> Regenerate(const Callbacks& callbacks = {}) {
    return Generate(callbacks, [&](const cria_callbacks* receiver, cria_result* result) {
      return cria_chat_regenerate(get(), receiver, result);
    });
  }

  // As cria_chat_cancel.
  void Cancel() { cria_chat_cancel(get()); }
  void ClearCancel() { cria_chat_clear_cancel(get()); }

  Error SetOptions(const GenerationOptions& options) {
    return internal::ErrorOf(cria_chat_set_options(get(), internal::COptions(options).get()));
  }
  // Variables of the chat template: a JSON object, or "" for none.
  Error SetVariables(std::string_view json) {
    return internal::ErrorOf(cria_chat_set_variables(get(), json.data(), json.size()));
  }
  Error Reset() { return internal::ErrorOf(cria_chat_reset(get())); }
  Error DropLastTurn() { return internal::ErrorOf(cria_chat_drop_last_turn(get())); }

  // The messages that were not dropped from a full context.
  std::vector<Message> messages() const {
    std::vector<Message> messages;
    for (size_t i = 0; i < cria_chat_num_messages(get()); ++i) {
      cria_message message = {};
      if (cria_chat_get_message(get(), i, &message) != CRIA_OK) break;
      messages.push_back({std::string(message.role, message.role_bytes),
                          std::string(message.content, message.content_bytes)});
    }
    return messages;
  }
  // The logits of the token after the messages, as cria_chat_get_logits.
  Result<std::vector<float>> Logits(const Callbacks& callbacks = {}) {
    const internal::Receiver receiver(callbacks);
    return internal::ArrayOf<float>([&](float* logits, size_t capacity, size_t* count) {
      return cria_chat_get_logits(get(), receiver.get(), logits, capacity, count);
    });
  }

  uint32_t context_used() const { return cria_chat_context_used(get()); }
  bool has_forgotten() const { return cria_chat_has_forgotten(get()) != 0; }

  cria_chat* get() const { return handle_.get(); }

 private:
  template <typename Call>
  static Result<Reply> Generate(const Callbacks& callbacks, const Call& call) {
    Reply reply;
    internal::Receiver receiver(callbacks);
    const cria_status status = call(receiver.get(), &reply);
    return receiver.Finish(status, std::move(reply));
  }

  struct Freeing {
    void operator()(cria_chat* chat) const { cria_chat_free(chat); }
  };
  std::unique_ptr<cria_chat, Freeing> handle_;
};

}  // namespace cria
