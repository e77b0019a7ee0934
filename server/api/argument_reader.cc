#include "server/api/argument_reader.h"

#include <optional>

#include "server/api/json_body.h"
#include "server/api/json_scanner.h"
#include "server/api/literal_reader.h"

namespace cria::server {
namespace {

class JsonReader final : public ArgumentReader {
 public:
  JsonReader() { scanner_.Begin(/*watched_depth=*/0); }

  State Take(char byte, std::string& json) override {
    if (scanner_.Take(byte) == JsonScanner::Step::kInvalid) return State::kInvalid;
    json += byte;
    return scanner_.is_complete() ? State::kComplete : State::kMore;
  }

 private:
  JsonScanner scanner_;
};

// Arguments that are read when they are complete: {…} of Gemma 4, and what stands before the
// closing parenthesis of a call in Python.
class LiteralsReader final : public ArgumentReader {
 public:
  explicit LiteralsReader(ArgumentStyle style) : is_python_(style == ArgumentStyle::kPython) {}

  State Take(char byte, std::string& json) override {
    text_ += byte;
    if (text_.size() > kMaxBytes) return State::kInvalid;
    if (quote_ != '\0') {
      TakeQuotedByte(byte);
      return State::kMore;
    }
    if (text_.ends_with(kGemmaQuote.substr(0, 3))) {
      quote_ = '>';
    } else if (byte == '"' || byte == '\'') {
      quote_ = byte;
      quote_begin_ = text_.size();
    } else if (byte == '{' || byte == '[' || byte == '(') {
      ++depth_;
    } else if (byte == '}' || byte == ']' || byte == ')') {
      const bool is_end = depth_ == (is_python_ ? 0 : 1);
      if (is_end) return End(json);
      if (depth_ == 0) return State::kInvalid;
      --depth_;
    }
    return State::kMore;
  }

 private:
  static constexpr size_t kMaxBytes = size_t{1} << 18;

  // Inside of <|"|>…<|"|>, the quote counts as '>'.
  void TakeQuotedByte(char byte) {
    if (quote_ == '>') {
      const std::string_view inside = std::string_view(text_).substr(quote_begin_);
      if (!has_opened_) {
        has_opened_ = text_.ends_with(kGemmaQuote);
        if (has_opened_) quote_begin_ = text_.size();
      } else if (inside.ends_with(kGemmaQuote)) {
        quote_ = '\0';
        has_opened_ = false;
      }
      return;
    }
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (byte == '\\') {
      is_escaped_ = true;
    } else if (byte == quote_) {
      quote_ = '\0';
    }
  }

  State End(std::string& json) {
    const std::string_view text(text_);
    const std::optional<Json> value =
        is_python_
            ? (text.ends_with(')') ? ReadKeywords(text.substr(0, text.size() - 1)) : std::nullopt)
            : ReadLiteral(text);
    if (!value || !value->is_object()) return State::kInvalid;
    json += Written(*value);
    return State::kComplete;
  }

  const bool is_python_;
  std::string text_;
  size_t depth_ = 0;
  char quote_ = '\0';  // What ends the text that is open.
  size_t quote_begin_ = 0;
  bool has_opened_ = false;  // The quote <|"|> that opens a text is complete.
  bool is_escaped_ = false;
};

}  // namespace

std::unique_ptr<ArgumentReader> MakeLiteralReader(ArgumentStyle style) {
  return std::make_unique<LiteralsReader>(style);
}

std::unique_ptr<ArgumentReader> MakeArgumentReader(const CallForm* form, const Tool& tool) {
  if (form == nullptr || form->style == ArgumentStyle::kJson) return std::make_unique<JsonReader>();
  if (form->style == ArgumentStyle::kTagged) return MakeTaggedReader(*form, tool);
  return MakeLiteralReader(form->style);
}

}  // namespace cria::server
