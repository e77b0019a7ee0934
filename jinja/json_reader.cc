#include "jinja/json_reader.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "core/utf8.h"
#include "jinja/literals.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

class JsonReader {
 public:
  JsonReader(Context& context, std::string_view json, JsonNumbers numbers)
      : context_(context), json_(json), numbers_(numbers) {}

  Value ReadAll() {
    const Value value = ReadValue(0);
    SkipSpace();
    if (at_ < json_.size()) Fail("more text after the value");
    return value;
  }

  // What is wrong, and where; null if nothing is.
  const char* problem() const { return problem_; }
  size_t position() const { return at_; }

 private:
  // Only the first failure counts. It moves to the end of the text, so that nothing else is read.
  void Fail(const char* problem) {
    if (problem_ != nullptr) return;
    problem_ = problem;
    json_ = json_.substr(0, at_);
  }

  char Peek() const { return at_ < json_.size() ? json_[at_] : '\0'; }
  bool Take(char wanted) {
    if (at_ == json_.size() || json_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (!json_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void SkipSpace() {
    while (Peek() == ' ' || Peek() == '\n' || Peek() == '\r' || Peek() == '\t') ++at_;
  }

  Value ReadValue(int depth) {
    if (depth > kMaxDepth) return Fail("values that are nested too deeply"), None();
    context_.Charge(1);
    SkipSpace();
    if (Take('{')) return ReadObject(depth);
    if (Take('[')) return ReadArray(depth);
    if (Take('"')) return ReadString();
    if (TakeWord("true")) return Bool(true);
    if (TakeWord("false")) return Bool(false);
    if (TakeWord("null")) return None();
    return ReadNumber();
  }

  // Whether another item comes, after a comma unless it is the first; otherwise the bracket has
  // been taken.
  bool NextItem(bool is_first, char bracket) {
    SkipSpace();
    if (Take(bracket) || context_.failed()) return false;
    if (is_first || Take(',')) return true;
    Fail("no comma or closing bracket after an item");
    return false;
  }

  Value ReadArray(int depth) {
    Growing<Value> items(context_);
    for (bool is_first = true; NextItem(is_first, ']'); is_first = false) {
      items.Add(ReadValue(depth + 1));
    }
    return MakeList(context_, items.items());
  }

  Value ReadObject(int depth) {
    Growing<Entry> entries(context_);
    for (bool is_first = true; NextItem(is_first, '}'); is_first = false) {
      SkipSpace();
      if (!Take('"')) Fail("a name that is not a string");
      // Attributes are looked up among names of one piece.
      const Value name = Untrusted(context_, Flat(context_, *ReadString().text));
      SkipSpace();
      if (!Take(':')) Fail("no colon after a name");
      const Value value = ReadValue(depth + 1);
      if (problem_ != nullptr) break;
      Set(entries, name, value);
    }
    return MakeDict(context_, entries.items());
  }

  void Set(Growing<Entry>& entries, const Value& name, const Value& value) {
    for (Entry& entry : entries.items()) {
      if (!Equal(context_, entry.key, name)) continue;
      entry.value = value;
      return;
    }
    entries.Add({name, value});
  }

  // The bytes that stand for themselves.
  std::string_view TakePlain() {
    const size_t begin = at_;
    while (at_ < json_.size() && json_[at_] != '"' && json_[at_] != '\\' &&
           static_cast<unsigned char>(json_[at_]) >= ' ') {
      ++at_;
    }
    return json_.substr(begin, at_ - begin);
  }

  // After the opening quote.
  Value ReadString() {
    const std::string_view first = TakePlain();
    // Most strings have no escape, and need no room for more pieces.
    if (Take('"')) return Untrusted(context_, first);
    TextBuilder text(context_);
    text.Add(first, /*is_trusted=*/false);
    while (problem_ == nullptr && !context_.failed() && !Take('"')) {
      text.Add(TakePlain(), /*is_trusted=*/false);
      if (Take('\\')) {
        ReadEscape(text);
      } else if (Peek() != '"') {
        Fail(at_ < json_.size() ? "a control character in a string" : "a string without an end");
      }
    }
    return text.Take();
  }

  void ReadEscape(TextBuilder& text) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const size_t letter = kLetters.find(Peek());
    if (at_ < json_.size() && letter != kLetters.npos) {
      ++at_;
      return text.Add(kMeanings.substr(letter, 1), /*is_trusted=*/false);
    }
    if (!Take('u')) return Fail("an unknown escape in a string");
    uint32_t code = ReadCodeUnit();
    if (code >= 0xD800 && code < 0xDC00 && json_.substr(at_).starts_with("\\u")) {
      const size_t second = at_;
      at_ += 2;
      const uint32_t low = ReadCodeUnit();
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else if (problem_ == nullptr) {
        at_ = second;
      }
    }
    std::array<char, kMaxUtf8Bytes> buffer;
    text.Add(Copy(context_, EncodeUtf8(code, &buffer)), /*is_trusted=*/false);
  }

  uint32_t ReadCodeUnit() {
    std::string_view digits = json_.substr(at_, 4);
    uint32_t code = 0;
    if (digits.size() < 4 || !TakeCode(&digits, 4, 16, &code) || !digits.empty()) {
      Fail("an escape without four hexadecimal digits");
      return 0;
    }
    at_ += 4;
    return code;
  }

  // Returns whether there are any.
  bool TakeDigits() {
    const size_t begin = at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    return at_ > begin;
  }

  Value ReadNumber() {
    const size_t begin = at_;
    Take('-');
    bool is_number = Take('0') || TakeDigits();
    const size_t whole_end = at_;
    if (Take('.')) is_number = is_number && TakeDigits();
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      is_number = is_number && TakeDigits();
    }
    if (!is_number) {
      at_ = begin;
      return Fail(begin < json_.size() ? "what is not a value" : "nothing where a value must be"),
             None();
    }
    const std::string_view written = json_.substr(begin, at_ - begin);
    int64_t integer = 0;
    const bool is_whole = whole_end == at_;
    if (is_whole && std::from_chars(written.data(), written.data() + written.size(), integer).ec ==
                        std::errc()) {
      return Int(integer);
    }
    if (is_whole || numbers_ == JsonNumbers::kExact) return Numeral(context_, written);
    return Float(ReadDouble(written).value_or(0.0));
  }

  Context& context_;
  std::string_view json_;
  JsonNumbers numbers_;
  size_t at_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace

Result<Value> ReadJson(Context& context, std::string_view json, JsonNumbers numbers) {
  JsonReader reader(context, json, numbers);
  const Value value = reader.ReadAll();
  if (context.failed()) return std::unexpected(context.error());
  if (reader.problem() != nullptr) {
    return cria::Fail(ErrorCode::kUsage,
                      "byte " + std::to_string(reader.position()) + ": " + reader.problem());
  }
  return value;
}

}  // namespace cria::jinja
