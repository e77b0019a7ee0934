#include "jinja/json.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/utf8.h"
#include "jinja/operators.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

struct JsonStyle {
  bool ensure_ascii = false;
  const Text* indent = nullptr;  // For each level; null: all in one line.
  const Text* item_separator = nullptr;
  const Text* key_separator = nullptr;
  bool sorts_keys = false;
};

// The widest indent of a level.
constexpr std::string_view kSpaces = "                ";

class JsonWriter {
 public:
  JsonWriter(Context& context, const JsonStyle& style)
      : context_(context), out_(context), style_(style) {}

  void Write(const Value& value, int depth) {
    if (depth > kMaxDepth) return context_.Fail("a value is nested too deeply");
    context_.Charge(1);
    switch (value.kind) {
      case Kind::kNone:
        return out_.Add("null", true);
      case Kind::kBool:
        return out_.Add(value.boolean ? "true" : "false", true);
      case Kind::kInt:
      case Kind::kNumeral:
        return out_.Add(ToText(context_, value));
      case Kind::kFloat:
        if (std::isnan(value.real)) return out_.Add("NaN", true);
        if (std::isinf(value.real))
          return out_.Add(value.real < 0 ? "-Infinity" : "Infinity", true);
        return out_.Add(ToText(context_, value));
      case Kind::kString:
        return WriteString(*value.text);
      case Kind::kList:
      case Kind::kTuple:
        if (value.list->view != nullptr) {
          FailOfType(context_, value, " that is a range or a part of a dictionary is not JSON");
          return;
        }
        return WriteList(value.list->items, depth);
      case Kind::kDict:
        return WriteDict(value.dict->entries, depth);
      default:
        FailOfType(context_, value, " cannot be written as JSON");
    }
  }
  Value Take() const { return out_.Take(); }

 private:
  void WriteString(const Text& text) {
    context_.ChargeBytes(text.size_bytes);
    out_.Add("\"", true);
    for (const Piece& piece : text.pieces) WriteEscaped(piece);
    out_.Add("\"", true);
  }

  void WriteEscaped(const Piece& piece) {
    size_t begin = 0;
    for (size_t i = 0; i < piece.bytes.size() && !context_.failed();) {
      const auto byte = static_cast<unsigned char>(piece.bytes[i]);
      const size_t size = byte < 0x80 ? 1 : CharacterBytes(piece.bytes.substr(i));
      const bool is_ascii = byte >= 0x20 && byte < 0x7F;
      i += size;
      if (byte == '"' || byte == '\\' || byte < 0x20 || (style_.ensure_ascii && !is_ascii)) {
        out_.Add(piece.bytes.substr(begin, i - size - begin), piece.is_trusted);
        WriteEscape(piece.bytes.substr(i - size, size), piece.is_trusted);
        begin = i;
      }
    }
    out_.Add(piece.bytes.substr(begin), piece.is_trusted);
  }

  void WriteEscape(std::string_view character, bool is_trusted) {
    static constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
    static constexpr std::string_view kLetters = "\"\\nrtbf";
    const size_t at = kEscaped.find(character[0]);
    if (at != std::string_view::npos) {
      const std::array<char, 2> escape = {'\\', kLetters[at]};
      return out_.Add(Copy(context_, {escape.data(), escape.size()}), is_trusted);
    }
    constexpr char32_t kReplacement = 0xFFFD;  // For bytes that are not UTF-8.
    const bool is_valid = FirstUtf8Character(character).state == Utf8State::kValid;
    const char32_t code = is_valid ? CodePoint(character, character.size()) : kReplacement;
    if (code < 0x10000) return WriteCodeUnit(code, is_trusted);
    WriteCodeUnit(0xD800 + ((code - 0x10000) >> 10), is_trusted);
    WriteCodeUnit(0xDC00 + ((code - 0x10000) & 0x3FF), is_trusted);
  }

  void WriteCodeUnit(char32_t unit, bool is_trusted) {
    const std::array<char, 6> escape = {'\\',
                                        'u',
                                        kHexDigits[unit >> 12 & 0xF],
                                        kHexDigits[unit >> 8 & 0xF],
                                        kHexDigits[unit >> 4 & 0xF],
                                        kHexDigits[unit & 0xF]};
    out_.Add(Copy(context_, {escape.data(), escape.size()}), is_trusted);
  }

  // Writes what is before an item, or before the closing bracket.
  void BeginItem(bool is_first, int depth) {
    if (!is_first) out_.Add(*style_.item_separator);
    if (style_.indent == nullptr) return;
    out_.Add("\n", true);
    for (int i = 0; i < depth; ++i) out_.Add(*style_.indent);
  }

  void WriteList(std::span<const Value> items, int depth) {
    out_.Add("[", true);
    for (size_t i = 0; i < items.size() && !context_.failed(); ++i) {
      BeginItem(i == 0, depth + 1);
      Write(items[i], depth + 1);
    }
    if (!items.empty()) BeginItem(true, depth);
    out_.Add("]", true);
  }

  void WriteDict(std::span<const Entry> entries, int depth) {
    if (style_.sorts_keys) {
      Growing<Entry> sorted(context_);
      for (const Entry& entry : entries) sorted.Add(entry);
      SortEntries(context_, sorted.items(), false);
      entries = sorted.items();
    }
    out_.Add("{", true);
    for (size_t i = 0; i < entries.size() && !context_.failed(); ++i) {
      BeginItem(i == 0, depth + 1);
      // Keys that are not strings are converted.
      const bool is_text = entries[i].key.is(Kind::kString);
      if (!is_text) out_.Add("\"", true);
      Write(entries[i].key, depth + 1);
      if (!is_text) out_.Add("\"", true);
      out_.Add(*style_.key_separator);
      Write(entries[i].value, depth + 1);
    }
    if (!entries.empty()) BeginItem(true, depth);
    out_.Add("}", true);
  }

  Context& context_;
  TextBuilder out_;
  JsonStyle style_;
};

}  // namespace

Value ToJson(Call& call) {
  Context& context = call.context;
  const auto& [ensure_ascii, indent, separators, sort_keys] = call.parameters;
  JsonStyle style = {.ensure_ascii = IsTrue(ensure_ascii), .sorts_keys = IsTrue(sort_keys)};
  if (indent.is(Kind::kString)) {
    style.indent = indent.text;
    if (indent.text->size_bytes > kSpaces.size()) {
      context.Fail("an indent of more than 16 bytes is not supported");
    }
  } else if (!indent.is_absent()) {
    const int64_t spaces = std::max<int64_t>(ToInt(context, indent, "an indent"), 0);
    if (spaces > static_cast<int64_t>(kSpaces.size())) {
      context.Fail("an indent of more than 16 is not supported");
      return {};
    }
    style.indent = Trusted(context, kSpaces.substr(0, static_cast<size_t>(spaces))).text;
  }
  style.item_separator = Trusted(context, style.indent == nullptr ? ", " : ",").text;
  style.key_separator = Trusted(context, ": ").text;
  if (!separators.is_absent()) {
    const auto given = Items(context, separators);
    if (given.size() != 2) {
      context.Fail("tojson needs two separators");
    } else {
      style.item_separator = &ToText(context, given[0]);
      style.key_separator = &ToText(context, given[1]);
    }
  }
  if (context.failed()) return {};
  JsonWriter writer(context, style);
  writer.Write(call.self, 0);
  return writer.Take();
}

}  // namespace cria::jinja
