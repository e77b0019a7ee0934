#include "server/api/infill.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "server/requests/request_error.h"

namespace cria::server {
namespace {

std::vector<int32_t> EncodePart(const Tokenizer& tokenizer, std::string_view text,
                                const char* field) {
  return ValueOf(tokenizer.Encode(text, {.add_bos = false}), field);
}

void Append(const std::vector<int32_t>& more, std::vector<int32_t>& tokens) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

// A file with its name, or as llama-server separates files for vocabularies without a token.
void AppendFile(const Tokenizer& tokenizer, const InfillTokens& marks, const InfillText::File& file,
                std::vector<int32_t>& tokens) {
  if (marks.file >= 0) tokens.push_back(marks.file);
  const std::string head = marks.file >= 0 ? file.name + "\n" : "\n\n--- snippet ---\n\n";
  Append(EncodePart(tokenizer, head, "input_extra"), tokens);
  Append(EncodePart(tokenizer, file.text, "input_extra"), tokens);
}

// The last ones.
void KeepEnd(std::vector<int32_t>& tokens, size_t count) {
  if (tokens.size() <= count) return;
  tokens.erase(tokens.begin(), tokens.end() - static_cast<ptrdiff_t>(count));
}

}  // namespace

std::vector<int32_t> EncodeInfill(const Tokenizer& tokenizer, const InfillTokens& marks,
                                  const InfillText& text, size_t max_tokens) {
  // What is between the parts, with BOS and the names of a repository and a file.
  constexpr size_t kMarks = 32;
  const size_t room = max_tokens - std::min(max_tokens, kMarks);
  std::vector<int32_t> prefix = EncodePart(tokenizer, text.prefix, "input_prefix");
  Append(EncodePart(tokenizer, text.prompt, "prompt"), prefix);
  std::vector<int32_t> suffix = EncodePart(tokenizer, text.suffix, "input_suffix");
  suffix.resize(std::min(suffix.size(), std::max(room / 4, room - std::min(room, prefix.size()))));
  KeepEnd(prefix, room - suffix.size());
  std::vector<int32_t> extras;
  for (const InfillText::File& file : text.extras) AppendFile(tokenizer, marks, file, extras);
  KeepEnd(extras, room - suffix.size() - prefix.size());

  std::vector<int32_t> tokens;
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  if (vocabulary.add_bos_token) tokens.push_back(vocabulary.bos_token_id);
  if (!extras.empty() && marks.repository >= 0) {
    tokens.push_back(marks.repository);
    Append(EncodePart(tokenizer, "myproject\n", "input_extra"), tokens);
  }
  Append(extras, tokens);
  if (!extras.empty() && marks.file >= 0) {
    tokens.push_back(marks.file);
    Append(EncodePart(tokenizer, "filename\n", "input_extra"), tokens);
  }
  tokens.push_back(marks.prefix);
  Append(prefix, tokens);
  tokens.push_back(marks.suffix);
  Append(suffix, tokens);
  tokens.push_back(marks.middle);
  return tokens;
}

void CheckInfill(const ServedModel& model, const std::string& field) {
  if (model.infill_tokens) return;
  RefuseField(field,
              "is not supported: this model's vocabulary has no tokens for the middle of a text",
              "unsupported_parameter");
}

TextPrompt InfillPrompt(const ServedModel& model, const InfillText& text, size_t answer_tokens) {
  const InfillTokens& marks = *model.infill_tokens;
  const size_t context = model.engine.decoder().context_tokens();
  const size_t room = std::min(answer_tokens == 0 ? context / 4 : answer_tokens, context / 2);
  TextPrompt prompt = {.tokens =
                           EncodeInfill(model.engine.tokenizer(), marks, text, context - room)};
  const std::span<const int32_t> own = model.engine.file().stop_token_ids();
  prompt.stop_token_ids.assign(own.begin(), own.end());
  for (const int32_t id :
       {marks.prefix, marks.suffix, marks.middle, marks.pad, marks.repository, marks.file}) {
    const bool is_new = id >= 0 && !std::ranges::contains(prompt.stop_token_ids, id);
    if (is_new) prompt.stop_token_ids.push_back(id);
  }
  return prompt;
}

}  // namespace cria::server
