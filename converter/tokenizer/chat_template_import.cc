#include "converter/tokenizer/chat_template_import.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>

#include "text/chat_template.h"

namespace cria {
namespace {

using Messages = std::vector<ChatMessage>;

// Text that models write and users see, although templates may write it, too.
constexpr std::array<std::string_view, 2> kVisibleTokens = {"<think>", "</think>"};

// Whether a piece looks like a mark of turns. Line breaks and the like, which some vocabularies
// have as tokens of their own, are not marks.
bool IsMark(const DraftPiece& piece) {
  const std::string_view text = piece.bytes;
  const bool is_special =
      piece.type == PieceType::kControl || piece.type == PieceType::kUserDefined;
  return is_special && ((text.starts_with('<') && text.ends_with('>')) ||
                        (text.starts_with('[') && text.ends_with(']')));
}

// Finds marks in the template's own text. Keeps views of the draft's pieces.
class MarkFinder {
 public:
  explicit MarkFinder(const VocabularyDraft& draft) {
    for (size_t id = 0; id < draft.pieces.size(); ++id) {
      const DraftPiece& piece = draft.pieces[id];
      if (!IsMark(piece)) continue;
      marks_.emplace(piece.bytes, static_cast<int32_t>(id));
      sizes_.insert(piece.bytes.size());
    }
  }

  // The leftmost mark, and of several there the longest; removes the text up to its end.
  std::optional<int32_t> Take(std::string_view* text) const {
    for (; !text->empty(); text->remove_prefix(1)) {
      if (text->front() != '<' && text->front() != '[') continue;
      for (const size_t size : sizes_) {
        const auto mark = size <= text->size() ? marks_.find(text->substr(0, size)) : marks_.end();
        if (mark == marks_.end()) continue;
        text->remove_prefix(size);
        return mark->second;
      }
    }
    return std::nullopt;
  }

 private:
  std::unordered_map<std::string_view, int32_t> marks_;  // Of equal marks, the first.
  std::set<size_t, std::greater<>> sizes_;               // Sizes of marks in bytes.
};

// Renders the conversation with a system message before it, or without one if the template refuses
// it.
Result<std::vector<ChatSegment>> RenderWithOrWithoutSystem(const ChatTemplate& chat_template,
                                                           Messages messages,
                                                           bool add_generation_prompt) {
  const auto without = RenderChat(chat_template, messages, add_generation_prompt);
  messages.insert(messages.begin(), ChatMessage{"system", "Be kind."});
  auto with = RenderChat(chat_template, messages, add_generation_prompt);
  return with ? with : without;
}

}  // namespace

Result<std::vector<int32_t>> ImportChatTemplate(std::string_view source, VocabularyDraft* draft) {
  std::vector<int32_t> end_ids;
  if (source.empty()) return end_ids;
  const auto token = [&](int32_t id) {
    return id < 0 ? std::string() : draft->pieces[static_cast<size_t>(id)].bytes;
  };
  const std::string bos_token = token(draft->rules.bos_token_id);
  const std::string eos_token = token(draft->rules.eos_token_id);
  const ChatTemplate chat_template = {
      .source = source, .bos_token = bos_token, .eos_token = eos_token};
  Messages messages = {{"user", "Hello?"}};
  const auto question = RenderWithOrWithoutSystem(chat_template, messages, true);
  if (!question) {
    return Fail(question.error().code() == ErrorCode::kUsage ? ErrorCode::kInvalidFile
                                                             : question.error().code(),
                question.error().message(), RemedyKind::kChatTemplate);
  }
  const MarkFinder finder(*draft);
  messages.push_back({"assistant", "Hello!"});
  if (const auto answered = RenderWithOrWithoutSystem(chat_template, messages, false)) {
    // The last segment but one is the answer's text, and the last is the template's.
    if (answered->size() >= 2 && answered->back().is_template) {
      std::string_view text = answered->back().text;
      if (const auto id = finder.Take(&text)) end_ids.push_back(*id);
    }
  }
  messages.push_back({"user", "And?"});
  if (const auto turns = RenderWithOrWithoutSystem(chat_template, messages, false)) {
    for (const ChatSegment& segment : *turns) {
      std::string_view text = segment.is_template ? segment.text : std::string_view();
      while (const auto id = finder.Take(&text)) {
        DraftPiece& piece = draft->pieces[static_cast<size_t>(*id)];
        if (!std::ranges::contains(kVisibleTokens, piece.bytes)) piece.type = PieceType::kControl;
      }
    }
  }
  return end_ids;
}

}  // namespace cria
