#include "server/calls/argument_reader.h"

#include <optional>

#include "server/calls/json_scanner.h"
#include "server/calls/literal_reader.h"
#include "server/requests/json_body.h"

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
    if (text_.size() > kMaxArgumentBytes) return State::kInvalid;
    if (!quote_.empty()) {
      TakeQuotedByte(byte);
      return State::kMore;
    }
    if (text_.ends_with(kGemmaQuote)) {
      quote_ = kGemmaQuote;
    } else if (byte == '\'') {
      quote_ = "'";
    } else if (byte == '"') {
      // The one in the middle of <|"|> is none.
      if (!text_.ends_with("<|\"")) quote_ = "\"";
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
  void TakeQuotedByte(char byte) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (byte == '\\' && quote_ != kGemmaQuote) {
      is_escaped_ = true;
    } else if (text_.ends_with(quote_)) {
      quote_ = {};
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
  std::string_view quote_;  // What ends the text that is open; "": none is.
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
