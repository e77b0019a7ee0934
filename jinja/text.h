#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "core/ascii.h"
#include "core/characters.h"
#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

// A part of a string that comes from one source. A piece from the template or its host is trusted:
// special tokens in it are intended.
struct Piece {
  std::string_view bytes;
  bool is_trusted = false;
};

// Maximum length of a string. Pieces of one long text can be repeated without copies, so memory
// alone does not keep the length within a size_t of 32 bits.
inline constexpr size_t kMaxTextBytes = size_t{1} << 30;

// A string, as pieces that know their source. The pieces are views of the template, of messages, or
// of the context's memory, so that concatenating and slicing copies no bytes. Positions are in
// bytes unless a name says characters.
struct Text {
  std::span<const Piece> pieces;
  size_t size_bytes = 0;
  // Made by the filter `safe`: what a template adds to this string is escaped for HTML.
  bool is_markup = false;
  mutable const char* flat = nullptr;  // The bytes of all pieces, if Flat has joined them.
};

// Concatenates pieces.
class TextBuilder {
 public:
  explicit TextBuilder(Context& context) : context_(context), pieces_(context) {}

  void Add(std::string_view bytes, bool is_trusted);
  void Add(const Text& text);
  // Adds a copy of trusted bytes.
  void AddCopy(std::string_view bytes);
  std::span<const Piece> pieces() const { return pieces_.items(); }
  Value Take(bool is_markup = false) const;

 private:
  Context& context_;
  Growing<Piece> pieces_;
  size_t size_bytes_ = 0;
};

// All bytes, contiguous.
std::string_view Flat(Context& context, const Text& text);

// Whether the whole string comes from the template or its host.
bool IsTrusted(const Text& text);

// The bytes from `begin` to before `end`; each keeps its trust. A part of markup is markup.
Value Slice(Context& context, const Text& text, size_t begin, size_t end);

// The string as markup.
Value AsMarkup(Context& context, const Text& text);
// The string as markup, with the characters that HTML has marks for escaped unless it is markup.
const Text* Escape(Context& context, const Text* text);

// A copy of the bytes in the context's memory.
std::string_view Copy(Context& context, std::string_view bytes);

// The range that remains after characters are removed from the left or right end, or both: white
// space, or the characters in `characters` unless it is empty.
std::pair<size_t, size_t> StrippedRange(std::string_view bytes, bool left, bool right,
                                        std::string_view characters = {});

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

bool IsLetter(char byte);

}  // namespace cria::jinja
