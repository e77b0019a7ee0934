#include "converter/tokenizer/chat_template_import.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/format.h"
#include "text/chat_template.h"
#include "text/reasoning_tags.h"
#include "text/special_token_finder.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

using Messages = std::vector<ChatMessage>;

// Models write these tags, and programs must see where reasoning ends, although templates may write
// them, too.
bool IsReasoningTag(std::string_view text) {
  return std::ranges::any_of(kReasoningTags, [&](const ReasoningTags& tags) {
    return text == tags.open || text == tags.close;
  });
}

// Limits the time that looking for marks takes. Marks have about 30 bytes, and templates write a
// few kilobytes for three short messages.
constexpr size_t kMaxMarkBytes = 256;
constexpr size_t kMaxTemplateTextBytes = size_t{256} << 10;

// Whether a text looks like a mark of turns, such as "<|im_end|>" or "[INST]". Line breaks, for
// example, are not marks.
bool LooksLikeMark(std::string_view text) {
  return text.size() <= kMaxMarkBytes && ((text.starts_with('<') && text.ends_with('>')) ||
                                          (text.starts_with('[') && text.ends_with(']')));
}

bool IsSpecial(const DraftPiece& piece) {
  return piece.type == PieceType::kControl || piece.type == PieceType::kUserDefined;
}

// Files whose converter did not know the marks have them as text, or as unused.
bool MayBecomeMark(const DraftPiece& piece) {
  return piece.type == PieceType::kNormal || piece.type == PieceType::kUnused;
}

// Finds marks in the template's own text: the leftmost, and of several there the longest.
class MarkFinder {
 public:
  enum class Marks : uint8_t { kSpecial, kPossible };
  explicit MarkFinder(const VocabularyDraft& draft, Marks marks_of = Marks::kSpecial) {
    for (size_t id = 0; id < draft.pieces.size(); ++id) {
      const DraftPiece& piece = draft.pieces[id];
      const bool is_possible = marks_of == Marks::kPossible && MayBecomeMark(piece);
      if (!LooksLikeMark(piece.bytes) || (!IsSpecial(piece) && !is_possible)) continue;
      if (is_possible && draft.FindSpecial(piece.bytes) >= 0) continue;
      bytes_ += draft.pieces[id].bytes;
      offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
      ids_.push_back(static_cast<int32_t>(id));
    }
    Vocabulary marks;
    marks.piece_bytes = {reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size()};
    marks.piece_offsets = offsets_;
    std::vector<uint32_t> all(ids_.size());
    std::iota(all.begin(), all.end(), 0);
    finder_.emplace(marks, std::move(all));
  }
  MarkFinder(const MarkFinder&) = delete;
  MarkFinder& operator=(const MarkFinder&) = delete;

  // The id of the next mark; removes the text up to its end.
  std::optional<int32_t> Take(std::string_view* text) const {
    const auto mark = finder_->Find(*text, 0);
    if (!mark) return std::nullopt;
    text->remove_prefix(mark->offset + mark->size_bytes);
    return ids_[static_cast<size_t>(mark->id)];
  }

 private:
  // The texts of the marks, one after another, with their ends.
  std::string bytes_;
  std::vector<uint32_t> offsets_ = {0};
  std::vector<int32_t> ids_;  // In the draft.
  std::optional<SpecialTokenFinder> finder_;
};

// For templates that fail without tools.
constexpr std::string_view kTools =
    R"({"tools": [{"type": "function", "function": {"name": "get_time", "description": )"
    R"("Returns the time.", "parameters": {"type": "object", "properties": {}, "required": []}}}]})";

// Renders the conversation with a system message before it, or without one if the template refuses
// it.
Result<std::vector<ChatSegment>> RenderWithOrWithoutSystem(const ChatTemplate& chat_template,
                                                           Messages messages,
                                                           bool add_generation_prompt,
                                                           std::string_view variables) {
  const RenderOptions options = {.add_generation_prompt = add_generation_prompt,
                                 .variables = variables};
  const auto without = chat_template.Render(messages, options);
  messages.insert(messages.begin(), ChatMessage{"system", "Be kind."});
  auto with = chat_template.Render(messages, options);
  return with ? with : without;
}

// The texts of the special tokens that a template may write by name.
class SpecialTexts {
 public:
  explicit SpecialTexts(const VocabularyDraft& draft)
      : bos_(TextOf(draft, draft.rules.bos_token_id)),
        eos_(TextOf(draft, draft.rules.eos_token_id)) {}
  ChatTemplateOptions options() const { return {.bos_token = bos_, .eos_token = eos_}; }

 private:
  static std::string TextOf(const VocabularyDraft& draft, int32_t id) {
    return id < 0 ? std::string() : draft.pieces[static_cast<size_t>(id)].bytes;
  }

  std::string bos_;
  std::string eos_;
};

// Whether the rendering has the text of a message.
bool Says(const std::vector<ChatSegment>& rendered, std::string_view text) {
  return std::ranges::any_of(rendered, [&](const ChatSegment& segment) {
    return !segment.is_template && segment.text.contains(text);
  });
}

void AddNote(std::vector<std::string>* notes, std::string note) {
  if (notes != nullptr) notes->push_back(std::move(note));
}

Status CheckSize(const std::vector<ChatSegment>& rendered) {
  size_t bytes = 0;
  for (const ChatSegment& segment : rendered) bytes += segment.text.size();
  if (bytes <= kMaxTemplateTextBytes) return {};
  return Fail(ErrorCode::kUnsupported,
              Format("The chat template writes {} bytes for short messages; at most {} are "
                     "supported",
                     bytes, kMaxTemplateTextBytes),
              RemedyKind::kChatTemplate);
}

// The texts that a template writes in a conversation with an answer.
struct OwnTexts {
  std::string behind_answer;
  std::vector<std::string> all;
};

// None if the template cannot be rendered with an answer; ImportChatTemplate says so if it matters.
OwnTexts TextsOf(std::string_view source, const VocabularyDraft& draft) {
  const SpecialTexts special(draft);
  const ChatTemplate chat_template(source, special.options());
  OwnTexts texts;
  Messages messages = {{"user", "Hello?"}, {"assistant", "Hello!"}};
  // With tools, if the template fails without them.
  std::string_view variables;
  if (!RenderWithOrWithoutSystem(chat_template, messages, false, variables)) variables = kTools;
  const auto answered = RenderWithOrWithoutSystem(chat_template, messages, false, variables);
  messages.push_back({"user", "And?"});
  const auto turns = RenderWithOrWithoutSystem(chat_template, messages, true, variables);
  for (const auto& rendered : {answered, turns}) {
    if (!rendered || !CheckSize(*rendered)) continue;
    for (const ChatSegment& segment : *rendered) {
      if (segment.is_template) texts.all.push_back(segment.text);
    }
  }
  if (answered && answered->size() >= 2 && answered->back().is_template) {
    texts.behind_answer = answered->back().text;
  }
  return texts;
}

}  // namespace

Result<std::vector<std::string>> MakeMarksSpecial(std::string_view source,
                                                  std::span<const std::string_view> end_tokens,
                                                  VocabularyDraft* draft) {
  std::vector<int32_t> marks;
  for (size_t id = 0; id < draft->pieces.size(); ++id) {
    const DraftPiece& piece = draft->pieces[id];
    if (MayBecomeMark(piece) && std::ranges::contains(end_tokens, piece.bytes)) {
      marks.push_back(static_cast<int32_t>(id));
    }
  }
  const OwnTexts texts = source.empty() ? OwnTexts() : TextsOf(source, *draft);
  const MarkFinder finder(*draft, MarkFinder::Marks::kPossible);
  const auto add_if_possible = [&](int32_t id) {
    const bool is_possible = MayBecomeMark(draft->pieces[static_cast<size_t>(id)]);
    if (is_possible && !std::ranges::contains(marks, id)) marks.push_back(id);
  };
  std::string_view behind_answer = texts.behind_answer;
  if (const auto id = finder.Take(&behind_answer)) add_if_possible(*id);
  const size_t num_certain = marks.size();
  for (std::string_view text : texts.all) {
    while (const auto id = finder.Take(&text)) add_if_possible(*id);
  }
  if (marks.size() > num_certain) {
    CRIA_ASSIGN_OR_RETURN(const OwnedVocabulary vocabulary,
                          BuildVocabulary(*draft, draft->pieces.size()));
    CRIA_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Create(vocabulary.view()));
    const auto becomes_text = [&](int32_t id) {
      const auto ids = tokenizer.Encode(draft->pieces[static_cast<size_t>(id)].bytes);
      return ids && std::ranges::contains(*ids, id);
    };
    const auto first = marks.begin() + static_cast<ptrdiff_t>(num_certain);
    marks.erase(std::remove_if(first, marks.end(), becomes_text), marks.end());
  }
  std::vector<std::string> names;
  for (const int32_t id : marks) {
    DraftPiece& piece = draft->pieces[static_cast<size_t>(id)];
    piece.type = IsReasoningTag(piece.bytes) ? PieceType::kUserDefined : PieceType::kControl;
    names.push_back(piece.bytes);
  }
  return names;
}

Result<std::vector<int32_t>> ImportChatTemplate(std::string_view source, VocabularyDraft* draft,
                                                std::vector<std::string>* notes) {
  for (DraftPiece& piece : draft->pieces) {
    if (piece.type == PieceType::kControl && IsReasoningTag(piece.bytes)) {
      piece.type = PieceType::kUserDefined;
    }
  }
  std::vector<int32_t> end_ids;
  if (source.empty()) return end_ids;
  const SpecialTexts special(*draft);
  const ChatTemplate chat_template(source, special.options());
  Messages messages = {{"user", "Hello?"}};
  std::string_view variables;
  auto question = RenderWithOrWithoutSystem(chat_template, messages, true, variables);
  if (!question) {
    const Error without_tools = question.error();
    variables = kTools;
    question = RenderWithOrWithoutSystem(chat_template, messages, true, variables);
    if (question) {
      AddNote(notes,
              "the chat template needs tools, and fails without them: " + without_tools.message());
    } else {
      question = std::unexpected(without_tools);
    }
  }
  if (!question) {
    return Fail(question.error().code() == ErrorCode::kUsage ? ErrorCode::kInvalidFile
                                                             : question.error().code(),
                question.error().message(), RemedyKind::kChatTemplate);
  }
  CRIA_RETURN_IF_ERROR(CheckSize(*question));
  if (chat_template.wants_parts()) {
    AddNote(notes, "the chat template reads contents only as lists of parts, and gets them so");
  } else if (!Says(*question, messages[0].content)) {
    AddNote(notes, "the chat template does not write what the user says");
  }
  const MarkFinder finder(*draft);
  messages.push_back({"assistant", "Hello!"});
  if (const auto answered = RenderWithOrWithoutSystem(chat_template, messages, false, variables)) {
    CRIA_RETURN_IF_ERROR(CheckSize(*answered));
    // The last segment but one is the answer's text, and the last is the template's.
    if (answered->size() >= 2 && answered->back().is_template) {
      std::string_view text = answered->back().text;
      if (const auto id = finder.Take(&text)) end_ids.push_back(*id);
    }
  }
  messages.push_back({"user", "And?"});
  if (const auto turns = RenderWithOrWithoutSystem(chat_template, messages, false, variables)) {
    CRIA_RETURN_IF_ERROR(CheckSize(*turns));
    for (const ChatSegment& segment : *turns) {
      std::string_view text = segment.is_template ? segment.text : std::string_view();
      while (const auto id = finder.Take(&text)) {
        DraftPiece& piece = draft->pieces[static_cast<size_t>(*id)];
        if (!IsReasoningTag(piece.bytes)) piece.type = PieceType::kControl;
      }
    }
  }
  return end_ids;
}

}  // namespace cria
