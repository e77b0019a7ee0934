#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llm/engine.h"
#include "server/requests/fields.h"

namespace cria::server {

// A prompt as a request has it: a text, or tokens.
struct PromptText {
  std::string text;
  std::vector<int32_t> tokens;  // Empty: the text counts.
};

// Which field has the prompts, and how many there may be.
struct PromptField {
  const char* name = "prompt";
  size_t max_count = 64;
};
// The field's value is a text, a list of token ids, or a list of either.
std::vector<PromptText> ReadPrompts(const Fields& request, size_t vocab_size,
                                    const PromptField& field = {});
// The text of the prompt, without control tokens.
std::string TextOf(const Engine& engine, const PromptText& prompt);

// A text to continue.
struct TextPrompt {
  std::vector<int32_t> tokens;
  bool at_text_start = false;
  std::vector<int32_t> stop_token_ids = {};  // Empty: those of the model.
};

// In texts, the names of control tokens become these tokens: programs write whole templates here.
std::vector<TextPrompt> EncodePrompts(const Engine& engine, const std::vector<PromptText>& prompts);

}  // namespace cria::server
