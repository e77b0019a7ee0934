#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "c_api/fixture_models.h"
#include "cria/cria.h"

namespace cria_test {

// What the demo model is asked, and what it answers.
inline constexpr const char* kQuestion = "Hello! Who are you?";
inline constexpr const char* kAnswer =
    "Hello! I am Cria, a baby llama. What would you like to talk about?";

// The demo model on one thread, packed into memory.
inline cria_model_options DemoOptions() {
  cria_model_options options = CRIA_MODEL_OPTIONS_INIT;
  options.path = kDemoModel;
  options.num_threads = 1;
  return options;
}

// Options for an answer that is always the same, of at most 60 tokens.
inline cria_generation_options Greedy() {
  cria_generation_options options = CRIA_GENERATION_OPTIONS_INIT;
  options.temperature = 0.0f;
  options.max_tokens = 60;
  return options;
}

struct Freeing {
  void operator()(cria_model* model) const { cria_model_free(model); }
  void operator()(cria_chat* chat) const { cria_chat_free(chat); }
  void operator()(cria_plan* plan) const { cria_plan_free(plan); }
};
using ModelPtr = std::unique_ptr<cria_model, Freeing>;
using ChatPtr = std::unique_ptr<cria_chat, Freeing>;
using PlanPtr = std::unique_ptr<cria_plan, Freeing>;

inline ModelPtr LoadModel(const cria_model_options& options = DemoOptions()) {
  cria_model* model = nullptr;
  EXPECT_EQ(cria_model_load(&options, &model), CRIA_OK) << cria_error_message();
  return ModelPtr(model);
}

inline ChatPtr MakeChat(const ModelPtr& model, const cria_generation_options& options = Greedy(),
                        const char* system_prompt = nullptr) {
  cria_chat* chat = nullptr;
  EXPECT_EQ(cria_chat_create(model.get(), system_prompt, &options, &chat), CRIA_OK)
      << cria_error_message();
  return ChatPtr(chat);
}

// Returns false to stop the answer.
using PieceCallback = std::function<bool(std::string_view piece)>;

struct Answer {
  std::string text;
  cria_status status = CRIA_OK;
  cria_result result = CRIA_RESULT_INIT;
  PieceCallback on_piece;

  static int Take(const char* text, size_t text_bytes, void* data) {
    auto* answer = static_cast<Answer*>(data);
    answer->text.append(text, text_bytes);
    return answer->on_piece && !answer->on_piece({text, text_bytes});
  }
};

inline Answer Send(const ChatPtr& chat, const char* message, PieceCallback on_piece = nullptr) {
  Answer answer;
  answer.on_piece = std::move(on_piece);
  answer.status = cria_chat_send(chat.get(), message, Answer::Take, &answer, &answer.result);
  return answer;
}

// Calls a function that takes callbacks and a result.
template <typename Call>
Answer Generate(const Call& call, PieceCallback on_piece = nullptr) {
  Answer answer;
  answer.on_piece = std::move(on_piece);
  cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
  callbacks.on_text = Answer::Take;
  callbacks.data = &answer;
  answer.status = call(&callbacks, &answer.result);
  return answer;
}

inline Answer Complete(const ModelPtr& model, const char* prompt,
                       const cria_generation_options& options = Greedy(),
                       PieceCallback on_piece = nullptr) {
  Answer answer;
  answer.on_piece = std::move(on_piece);
  answer.status =
      cria_complete(model.get(), prompt, &options, Answer::Take, &answer, &answer.result);
  return answer;
}

// Expects that a call failed with this status, and that its message contains these words.
inline void ExpectFailure(cria_status actual, cria_status expected, std::string_view words) {
  EXPECT_EQ(actual, expected) << cria_error_message();
  EXPECT_NE(std::string_view(cria_error_message()).find(words), std::string_view::npos)
      << cria_error_message();
}

}  // namespace cria_test
