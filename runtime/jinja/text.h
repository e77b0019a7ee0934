#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

// A part of a string that comes from one source. What the template or its host wrote is trusted:
// special tokens in it are meant.
struct Piece {
  std::string_view bytes;
  bool is_trusted = false;
};

// A string, as pieces that know where they come from. They are views of the template, of messages,
// or of the context's memory, so that joining and cutting copies no bytes. Positions are bytes
// unless characters are named.
struct Text {
  std::span<const Piece> pieces;
  size_t size_bytes = 0;
  mutable const char* flat = nullptr;  // Where Flat has put the bytes of several pieces.
};

// Puts pieces one after another.
class TextBuilder {
 public:
  explicit TextBuilder(Context& context) : context_(context), pieces_(context) {}

  void Add(std::string_view bytes, bool is_trusted);
  void Add(const Text& text);
  // Trusted bytes that need not outlive the call.
  void AddCopy(std::string_view bytes);
  std::span<const Piece> pieces() const { return pieces_.items(); }
  Value Take() const;

 private:
  Context& context_;
  Growing<Piece> pieces_;
  size_t size_bytes_ = 0;
};

// All bytes in one place.
std::string_view Flat(Context& context, const Text& text);

// Whether the template or its host wrote all of it.
bool IsTrusted(const Text& text);

// The bytes from `begin` to before `end`, each with its own trust.
Value Slice(Context& context, const Text& text, size_t begin, size_t end);

// The bytes, changed one by one. `change` gets what was before the byte, or a space, and the byte.
Value ChangeBytes(Context& context, const Text& text, char (*change)(char before, char byte));

// A copy of the bytes in the context's memory.
std::string_view Copy(Context& context, std::string_view bytes);

// How many bytes the character has that `bytes`, which must not be empty, begin with. A byte that
// is not UTF-8 is a character of its own.
size_t CharacterBytes(std::string_view bytes);
size_t CountCharacters(std::string_view bytes);
// Where the character with this index begins, or the end.
size_t CharacterOffset(std::string_view bytes, size_t index);

// What Python's str.isspace() says of the character that `bytes` begin with.
bool IsWhiteSpace(std::string_view bytes);

// The range that is left where characters are taken away from both ends, or from one: white space,
// or those in `characters`, unless it is empty.
std::pair<size_t, size_t> StrippedRange(std::string_view bytes, bool left, bool right,
                                        std::string_view characters = {});

char ToUpper(char byte);
char ToLower(char byte);
bool IsLetter(char byte);

}  // namespace cria::jinja
