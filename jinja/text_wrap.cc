// The filter wordwrap, which breaks lines where Python's module textwrap does.

#include <algorithm>

#include "jinja/natives.h"
#include "jinja/string_functions.h"

namespace cria::jinja {
namespace {

// Positions in characters.
struct Chunk {
  size_t begin;
  size_t end;
  size_t size() const { return end - begin; }
};

bool IsSpace(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsOfWord(char32_t c) { return c == '_' || IsAlphanumeric(c); }
bool IsWordLetter(char32_t c) { return IsOfWord(c) && !IsDecimal(c); }
bool EndsBeforeDash(char32_t c) {
  return IsOfWord(c) || (c < 0x80 && std::string_view("!\"'&.,?").contains(static_cast<char>(c)));
}

// One line of a text, and the parts between which it may be broken.
class LineWrapper {
 public:
  LineWrapper(Context& context, const Text& text, bool breaks_at_hyphens)
      : context_(context),
        text_(text),
        breaks_at_hyphens_(breaks_at_hyphens),
        codes_(context),
        offsets_(context),
        chunks_(context) {
    const std::string_view bytes = Flat(context, text);
    context.Charge(bytes.size());
    for (size_t at = 0; at < bytes.size() && !context.failed();) {
      codes_.Add(CodeOf(bytes.substr(at)));
      offsets_.Add(static_cast<uint32_t>(at));
      at += CharacterBytes(bytes.substr(at));
    }
    offsets_.Add(static_cast<uint32_t>(bytes.size()));
    for (size_t at = 0; at < codes_.size() && !context.failed();) {
      const size_t end = ChunkEnd(at);
      chunks_.Add({at, end});
      at = end;
    }
  }

  // Adds the lines that the line is broken into.
  void Wrap(size_t width, bool breaks_long_words, Growing<Value>* lines) {
    const std::span<Chunk> chunks = chunks_.items();
    const size_t lines_before = lines->size();
    size_t next = 0;
    while (next < chunks.size() && !context_.failed()) {
      context_.Charge(1);
      if (lines->size() > lines_before && IsBlank(chunks[next])) ++next;
      if (next == chunks.size()) break;
      Chunk line = {chunks[next].begin, chunks[next].begin};
      Chunk last = line;
      size_t count = 0;
      const auto add = [&](size_t end) {
        last = {line.end, end};
        line.end = end;
        ++count;
      };
      while (next < chunks.size() && line.size() + chunks[next].size() <= width) {
        add(chunks[next++].end);
      }
      if (next < chunks.size() && chunks[next].size() > width) {
        if (breaks_long_words) {
          chunks[next].begin += BrokenSize(chunks[next], width - line.size());
          add(chunks[next].begin);
        } else if (count == 0) {
          add(chunks[next++].end);
        }
      }
      if (count > 0 && IsBlank(last)) {
        line.end = last.begin;
        --count;
      }
      if (count > 0) {
        lines->Add(
            Slice(context_, text_, offsets_.items()[line.begin], offsets_.items()[line.end]));
      }
    }
  }

 private:
  char32_t At(size_t at) const { return at < codes_.size() ? codes_.items()[at] : U'\0'; }
  bool IsLetterAt(size_t at) const { return at < codes_.size() && IsWordLetter(At(at)); }

  bool IsBlank(const Chunk& chunk) const {
    const std::string_view bytes = Flat(context_, text_);
    const auto offsets = offsets_.items();
    const std::string_view part =
        bytes.substr(offsets[chunk.begin], offsets[chunk.end] - offsets[chunk.begin]);
    return StrippedRange(part, true, false).first == part.size();
  }

  // The end of a dash of several hyphens between words that begins here, or `at`.
  size_t DashEnd(size_t at) const {
    if (at == 0 || At(at) != '-' || At(at + 1) != '-' || !EndsBeforeDash(At(at - 1))) return at;
    size_t end = at;
    while (At(end) == '-') ++end;
    return end < codes_.size() && IsOfWord(At(end)) ? end : at;
  }

  // Whether a line may be broken behind the hyphen here.
  bool IsBreakingHyphen(size_t at) const {
    if (At(at) != '-' || !IsLetterAt(at + 1)) return false;
    const bool is_before_letters = IsLetterAt(at + 2) || (At(at + 2) == '-' && IsLetterAt(at + 3));
    if (!is_before_letters || at < 2 || !IsLetterAt(at - 1)) return false;
    return IsLetterAt(at - 2) || (at >= 3 && At(at - 2) == '-' && IsLetterAt(at - 3));
  }

  size_t ChunkEnd(size_t begin) const {
    const size_t all = codes_.size();
    size_t end = begin;
    const bool is_space = IsSpace(At(begin));
    if (is_space || !breaks_at_hyphens_) {
      while (end < all && IsSpace(At(end)) == is_space) ++end;
      return end;
    }
    if (const size_t dash_end = DashEnd(begin); dash_end > begin) return dash_end;
    for (end = begin + 1; end < all && !IsSpace(At(end)); ++end) {
      if (IsBreakingHyphen(end)) return end + 1;
      if (DashEnd(end) > end) break;
    }
    return end;
  }

  // How many of the characters of a word that is longer than a line go into `left` characters.
  size_t BrokenSize(const Chunk& chunk, size_t left) const {
    if (!breaks_at_hyphens_) return left;
    for (size_t size = left; size > 1; --size) {
      if (At(chunk.begin + size - 1) != '-') continue;
      for (size_t i = 0; i + 1 < size; ++i) {
        if (At(chunk.begin + i) != '-') return size;
      }
      break;
    }
    return left;
  }

  Context& context_;
  const Text& text_;
  bool breaks_at_hyphens_;
  Growing<uint32_t> codes_;
  Growing<uint32_t> offsets_;  // In bytes. Texts are shorter than 2^32 bytes.
  Growing<Chunk> chunks_;
};

}  // namespace

Value WrapWords(Call& call) {
  Context& context = call.context;
  const auto& [given_width, break_long, wrap, break_hyphens] = call.parameters;
  if (!call.self.is(Kind::kString)) return FailOfType(context, call.self, " has no lines to wrap");
  const int64_t width =
      given_width.is(Kind::kUndefined) ? 79 : ToInt(context, given_width, "a width");
  const auto is_on = [](const Value& value) { return value.is(Kind::kUndefined) || IsTrue(value); };
  const Value separator = wrap.is_absent() ? Trusted(context, "\n") : wrap;
  if (!separator.is(Kind::kString)) return FailOfType(context, separator, " does not join lines");
  const Value lines = SplitLines(context, *call.self.text, /*keeps_ends=*/false);
  Growing<Value> wrapped(context);
  for (const Value& line : lines.list->items) {
    if (width <= 0) context.Fail("a line is not wrapped to a width of no characters");
    if (context.failed()) return {};
    Growing<Value> parts(context);
    LineWrapper(context, *line.text, is_on(break_hyphens))
        .Wrap(static_cast<size_t>(width), is_on(break_long), &parts);
    // What textwrap gives is a plain string, also if the text is markup.
    Value joined = Join(context, parts.items(), *separator.text, separator.text->is_markup);
    wrapped.Add(joined);
  }
  return Join(context, wrapped.items(), *separator.text, separator.text->is_markup);
}

}  // namespace cria::jinja
