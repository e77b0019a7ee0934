// The C API (cria.h) for C++17: handles that free themselves, std::string and std::function. It
// needs neither exceptions nor RTTI; errors are values. The rules for threads and lifetimes are
// those of cria.h. Texts are passed as C strings, which end at their first zero byte. Callbacks
// must not throw.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
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

struct GenerationOptions : cria_generation_options {
  GenerationOptions() : cria_generation_options CRIA_GENERATION_OPTIONS_INIT {}
};

// The text of an answer, and its figures.
struct Reply : cria_result {
  Reply() : cria_result CRIA_RESULT_INIT {}
  std::string text;
};

// TextCallback and ProgressCallback return whether to go on.
using TextCallback = std::function<bool(std::string_view text)>;
using ProgressCallback = std::function<bool(uint64_t done_bytes, uint64_t total_bytes)>;
using NoticeCallback = std::function<void(std::string_view sentence)>;

namespace internal {

inline Error ErrorOf(cria_status status) {
  return status == CRIA_OK ? Error{} : Error{status, cria_error_message()};
}

// Appends the text to `text` and passes it on to `on_text`.
struct TextReceiver {
  const TextCallback& on_text;
  std::string& text;

  static int Take(const char* text, size_t text_bytes, void* data) noexcept {
    auto* receiver = static_cast<TextReceiver*>(data);
    receiver->text.append(text, text_bytes);
    return receiver->on_text && !receiver->on_text(std::string_view(text, text_bytes)) ? 1 : 0;
  }
};

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

  Result<Reply> Complete(const std::string& prompt, const GenerationOptions& options = {},
                         const TextCallback& on_text = nullptr) {
    Reply reply;
    internal::TextReceiver receiver{on_text, reply.text};
    const cria_status status = cria_complete(get(), prompt.c_str(), &options,
                                             internal::TextReceiver::Take, &receiver, &reply);
    if (status != CRIA_OK) return internal::ErrorOf(status);
    return reply;
  }

  Result<std::vector<int32_t>> Tokenize(const std::string& text, bool add_special = true,
                                        bool parse_special = false) const {
    size_t count = 0;
    cria_status status =
        cria_tokenize(get(), text.c_str(), add_special, parse_special, nullptr, 0, &count);
    // One more than needed: with a null pointer, the call would only count.
    std::vector<int32_t> tokens(count + 1);
    if (status == CRIA_OK) {
      status = cria_tokenize(get(), text.c_str(), add_special, parse_special, tokens.data(), count,
                             &count);
    }
    if (status != CRIA_OK) return internal::ErrorOf(status);
    tokens.resize(count);
    return tokens;
  }
  Result<std::string> Detokenize(const std::vector<int32_t>& tokens) const {
    size_t bytes = 0;
    cria_status status = cria_detokenize(get(), tokens.data(), tokens.size(), nullptr, 0, &bytes);
    std::string text(bytes + 1, '\0');
    if (status == CRIA_OK) {
      status =
          cria_detokenize(get(), tokens.data(), tokens.size(), text.data(), text.size(), &bytes);
    }
    if (status != CRIA_OK) return internal::ErrorOf(status);
    text.resize(bytes);
    return text;
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
  static Result<Chat> Create(const Model& model, const std::string& system_prompt = {},
                             const GenerationOptions& options = {}) {
    Chat chat;
    cria_chat* handle = nullptr;
    const cria_status status =
        cria_chat_create(model.get(), system_prompt.c_str(), &options, &handle);
    chat.handle_.reset(handle);
    if (status != CRIA_OK) return internal::ErrorOf(status);
    return chat;
  }

  Chat() = default;

  Result<Reply> Send(const std::string& message, const TextCallback& on_text = nullptr) {
    Reply reply;
    internal::TextReceiver receiver{on_text, reply.text};
    const cria_status status =
        cria_chat_send(get(), message.c_str(), internal::TextReceiver::Take, &receiver, &reply);
    if (status != CRIA_OK) return internal::ErrorOf(status);
    return reply;
  }
  Error SetOptions(const GenerationOptions& options) {
    return internal::ErrorOf(cria_chat_set_options(get(), &options));
  }
  Error Reset() { return internal::ErrorOf(cria_chat_reset(get())); }

  uint32_t context_used() const { return cria_chat_context_used(get()); }
  bool has_forgotten() const { return cria_chat_has_forgotten(get()) != 0; }

  cria_chat* get() const { return handle_.get(); }

 private:
  struct Freeing {
    void operator()(cria_chat* chat) const { cria_chat_free(chat); }
  };
  std::unique_ptr<cria_chat, Freeing> handle_;
};

}  // namespace cria
