#include "grammar/characters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace cria::grammar {
namespace {

// What a JSON string shows as it is.
constexpr auto kUnescaped =
    std::to_array<CodePointRange>({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kMaxCodePoint}});

// The letter behind the backslash in the short escape of a character, or 0 if it has none.
char ShortEscape(uint32_t code_point) {
  switch (code_point) {
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    case '"':
    case '\\':
      return static_cast<char>(code_point);
    default:
      return 0;
  }
}

bool IsInRanges(std::span<const CodePointRange> ranges, uint32_t code_point) {
  return std::ranges::any_of(ranges, [code_point](const CodePointRange& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

// The characters of the ranges that a JSON string escapes.
Node EscapedCharacters(Expressions& expressions, std::span<const CodePointRange> ranges) {
  ByteSet letters;
  std::array<ByteSet, 2> last_digits;  // X of U+000X and U+001X.
  const auto add = [&](uint32_t code_point) {
    if (!IsInRanges(ranges, code_point)) return;
    if (const char letter = ShortEscape(code_point); letter != 0) {
      letters.Add(static_cast<uint8_t>(letter));
      return;
    }
    ByteSet& digits = last_digits[code_point >> 4];
    const auto digit = static_cast<uint8_t>(code_point & 0xF);
    if (digit < 10) {
      digits.Add(static_cast<uint8_t>('0' + digit));
    } else {
      digits.Add(static_cast<uint8_t>('a' + digit - 10));
      digits.Add(static_cast<uint8_t>('A' + digit - 10));
    }
  };
  for (uint32_t control = 0; control < 0x20; ++control) add(control);
  add('"');
  add('\\');
  const auto options = std::to_array<Node>(
      {expressions.Bytes(letters),
       expressions.Sequence(expressions.Text("u000"), expressions.Bytes(last_digits[0])),
       expressions.Sequence(expressions.Text("u001"), expressions.Bytes(last_digits[1]))});
  return expressions.Sequence(expressions.Byte('\\'), expressions.Choice(options));
}

}  // namespace

Node Characters(Expressions& expressions, std::span<const CodePointRange> ranges,
                CharacterEncoding encoding) {
  if (encoding == CharacterEncoding::kUtf8) return expressions.Characters(ranges);
  std::vector<CodePointRange> unescaped;
  for (const CodePointRange& part : kUnescaped) {
    for (const CodePointRange& range : ranges) {
      const uint32_t first = std::max(range.first, part.first);
      const uint32_t last = std::min(range.last, part.last);
      if (first <= last) unescaped.push_back({first, last});
    }
  }
  return expressions.Choice(expressions.Characters(unescaped),
                            EscapedCharacters(expressions, ranges));
}

Node AnyCharacter(Expressions& expressions, CharacterEncoding encoding) {
  const CodePointRange all = {0, kMaxCodePoint};
  return Characters(expressions, {&all, 1}, encoding);
}

Node Literal(Expressions& expressions, std::string_view utf8, CharacterEncoding encoding) {
  if (encoding == CharacterEncoding::kUtf8) return expressions.Text(utf8);
  std::vector<Node> parts;
  while (!utf8.empty()) {
    size_t size = 0;
    while (size < utf8.size()) {
      const auto byte = static_cast<uint8_t>(utf8[size]);
      if (byte < 0x20 || byte == '"' || byte == '\\') break;
      ++size;
    }
    parts.push_back(expressions.Text(utf8.substr(0, size)));
    utf8.remove_prefix(size);
    if (utf8.empty()) break;
    const auto escaped = static_cast<uint8_t>(utf8[0]);
    const CodePointRange range = {escaped, escaped};
    parts.push_back(EscapedCharacters(expressions, {&range, 1}));
    utf8.remove_prefix(1);
  }
  return expressions.Sequence(parts);
}

}  // namespace cria::grammar
