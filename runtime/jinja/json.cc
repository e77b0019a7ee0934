#include "jinja/json.h"

#include <array>

#include "jinja/operators.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Context& context, int64_t indent, std::string_view item_separator,
             std::string_view key_separator, bool sorts_keys)
      : context_(context),
        out_(context),
        indent_(indent),
        item_separator_(item_separator),
        key_separator_(key_separator),
        sorts_keys_(sorts_keys) {}

  void Write(const Value& value, int depth) {
    if (depth > kMaxDepth) return context_.Fail({"a value is nested too deeply"});
    context_.Charge(1);
    switch (value.kind) {
      case Kind::kNone:
        return out_.Add("null", true);
      case Kind::kBool:
        return out_.Add(value.boolean ? "true" : "false", true);
      case Kind::kInt:
      case Kind::kFloat:
        return out_.Add(ToText(context_, value));
      case Kind::kString:
        return WriteString(*value.text);
      case Kind::kList:
      case Kind::kTuple:
        return WriteList(value.list->items, depth);
      case Kind::kDict:
        return WriteDict(value.dict->entries, depth);
      default:
        context_.Fail({"a value of type ", KindName(value.kind), " cannot be written as JSON"});
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
    for (size_t i = 0; i < piece.bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(piece.bytes[i]);
      if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
      out_.Add(piece.bytes.substr(begin, i - begin), piece.is_trusted);
      begin = i + 1;
      static constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f";
      static constexpr std::string_view kLetters = "\"\\nrtbf";
      static constexpr std::string_view kDigits = "0123456789abcdef";
      std::array<char, 6> escape = {
          '\\', 'u', '0', '0', kDigits[byte >> 4 & 0xF], kDigits[byte & 0xF]};
      const size_t at = kEscaped.find(piece.bytes[i]);
      if (at != std::string_view::npos) escape[1] = kLetters[at];
      const size_t size = at != std::string_view::npos ? 2 : escape.size();
      out_.Add(Copy(context_, {escape.data(), size}), piece.is_trusted);
    }
    out_.Add(piece.bytes.substr(begin), piece.is_trusted);
  }

  // Writes what precedes an item or the closing bracket.
  void BeginItem(bool is_first, int depth) {
    if (!is_first) out_.Add(item_separator_, true);
    if (indent_ < 0) return;
    out_.Add("\n", true);
    // `depth` is at most kMaxDepth, with at most 16 spaces for each level.
    constexpr std::string_view kSpaces = "                ";
    for (int i = 0; i < depth; ++i) out_.Add(kSpaces.substr(0, static_cast<size_t>(indent_)), true);
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
    if (sorts_keys_) {
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
      out_.Add(key_separator_, true);
      Write(entries[i].value, depth + 1);
    }
    if (!entries.empty()) BeginItem(true, depth);
    out_.Add("}", true);
  }

  Context& context_;
  TextBuilder out_;
  int64_t indent_;  // -1: everything in one line.
  std::string_view item_separator_;
  std::string_view key_separator_;
  bool sorts_keys_;
};

}  // namespace

Value ToJson(Call& call) {
  Context& context = call.context;
  const auto& [ensure_ascii, indent, separators, sort_keys] = call.parameters;
  if (IsTrue(ensure_ascii)) context.Fail({"tojson with ensure_ascii is not supported"});
  const int64_t spaces = indent.is_absent() ? -1 : ToInt(context, indent, "an indent");
  if (spaces > 16) context.Fail({"an indent of more than 16 is not supported"});
  std::string_view item_separator = spaces < 0 ? ", " : ",";
  std::string_view key_separator = ": ";
  if (!separators.is_absent()) {
    const auto given = Items(context, separators);
    if (given.size() != 2) {
      context.Fail({"tojson needs two separators"});
    } else {
      item_separator = Flat(context, ToText(context, given[0]));
      key_separator = Flat(context, ToText(context, given[1]));
    }
  }
  if (context.failed()) return {};
  JsonWriter writer(context, spaces, item_separator, key_separator, IsTrue(sort_keys));
  writer.Write(call.self, 0);
  return writer.Take();
}

}  // namespace cria::jinja
