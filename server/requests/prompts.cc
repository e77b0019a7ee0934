#include "server/requests/prompts.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "server/requests/request_error.h"
#include "text/detokenizer.h"

namespace cria::server {
namespace {

bool IsListOfNumbers(const Json& list) {
  return !list.empty() &&
         std::ranges::all_of(list, [](const Json& item) { return item.is_number_integer(); });
}

PromptText ReadPromptText(const Json& prompt, const std::string& path, size_t vocab_size) {
  if (prompt.is_string()) return {.text = prompt.get<std::string>()};
  if (!prompt.is_array() || !IsListOfNumbers(prompt)) {
    RefuseField(path, "is neither a text nor a list of token ids");
  }
  PromptText read;
  read.tokens.reserve(prompt.size());
  for (const Json& id : prompt) {
    // A negative number becomes a large one.
    const auto number = id.get<uint64_t>();
    if (number >= vocab_size) {
      RefuseField(path, Format("has the token id {}, which is outside the vocabulary of {}",
                               id.dump(), vocab_size));
    }
    read.tokens.push_back(static_cast<int32_t>(number));
  }
  return read;
}

}  // namespace

std::vector<PromptText> ReadPrompts(const Fields& request, size_t vocab_size,
                                    const PromptField& field) {
  const std::string name = field.name;
  const Json* const prompt = request.Find(name);
  if (prompt == nullptr) RefuseField(name, "is missing");
  if (!prompt->is_array() || IsListOfNumbers(*prompt)) {
    return {ReadPromptText(*prompt, name, vocab_size)};
  }
  if (prompt->empty()) RefuseField(name, "is an empty list");
  if (prompt->size() > field.max_count) {
    RefuseField(name, Format("has more than {} texts", field.max_count));
  }
  std::vector<PromptText> prompts;
  prompts.reserve(prompt->size());
  for (const Json& item : *prompt) {
    prompts.push_back(ReadPromptText(item, Format("{}[{}]", name, prompts.size()), vocab_size));
  }
  return prompts;
}

std::string TextOf(const Engine& engine, const PromptText& prompt) {
  std::string text = prompt.text;
  Detokenizer detokenizer(engine.tokenizer());
  for (const int32_t id : prompt.tokens) text += detokenizer.Append(id);
  text += detokenizer.Flush();
  return text;
}

std::vector<TextPrompt> EncodePrompts(const Engine& engine,
                                      const std::vector<PromptText>& prompts) {
  constexpr size_t kMaxTokens = size_t{1} << 18;
  size_t num_tokens = 0;
  std::vector<TextPrompt> encoded;
  encoded.reserve(prompts.size());
  for (const PromptText& prompt : prompts) {
    TextPrompt text = {.tokens = prompt.tokens, .at_text_start = prompt.text.empty()};
    if (prompt.tokens.empty()) {
      text.tokens = ValueOf(
          engine.tokenizer().Encode(prompt.text, {.parse_special = true,
                                                  .max_tokens = engine.decoder().context_tokens()}),
          "prompt");
    } else {
      text.at_text_start = false;
    }
    if (text.tokens.empty()) RefuseField("prompt", "is empty: there is nothing to go on from");
    num_tokens += text.tokens.size();
    // A single prompt is bounded by the context.
    if (!encoded.empty() && num_tokens > kMaxTokens) {
      RefuseField("prompt", Format("has prompts with more than {} tokens together", kMaxTokens));
    }
    text.tokens.shrink_to_fit();
    encoded.push_back(std::move(text));
  }
  return encoded;
}

}  // namespace cria::server
