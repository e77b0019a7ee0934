#include "jinja/text.h"

#include <algorithm>
#include <array>

namespace cria::jinja {

std::string_view Copy(Context& context, std::string_view bytes) {
  const std::span<char> copy = context.Array<char>(bytes.size());
  if (copy.empty()) return {};
  std::ranges::copy(bytes, copy.begin());
  return {copy.data(), copy.size()};
}

void TextBuilder::Add(std::string_view bytes, bool is_trusted) {
  if (bytes.empty()) return;
  context_.Charge(1);
  if (bytes.size() > kMaxTextBytes - size_bytes_) {
    return context_.Fail(ErrorCode::kOutOfRange, {"a string becomes too long"});
  }
  size_bytes_ += bytes.size();
  if (pieces_.size() > 0) {
    Piece& last = pieces_.items().back();
    if (last.is_trusted == is_trusted && last.bytes.data() + last.bytes.size() == bytes.data()) {
      last.bytes = {last.bytes.data(), last.bytes.size() + bytes.size()};
      return;
    }
  }
  pieces_.Add({bytes, is_trusted});
}

void TextBuilder::Add(const Text& text) {
  for (const Piece& piece : text.pieces) Add(piece.bytes, piece.is_trusted);
}

void TextBuilder::AddCopy(std::string_view bytes) { Add(Copy(context_, bytes), true); }

Value TextBuilder::Take(bool is_markup) const {
  return String(context_.New<Text>(
      {.pieces = pieces_.items(), .size_bytes = size_bytes_, .is_markup = is_markup}));
}

std::string_view Flat(Context& context, const Text& text) {
  if (text.pieces.empty()) return {};
  if (text.pieces.size() == 1) return text.pieces[0].bytes;
  if (text.flat == nullptr) {
    context.ChargeBytes(text.size_bytes);
    const std::span<char> bytes = context.Array<char>(text.size_bytes);
    if (bytes.empty()) return {};
    auto end = bytes.begin();
    for (const Piece& piece : text.pieces) end = std::ranges::copy(piece.bytes, end).out;
    text.flat = bytes.data();
  }
  return {text.flat, text.size_bytes};
}

bool IsTrusted(const Text& text) { return std::ranges::all_of(text.pieces, &Piece::is_trusted); }

Value Slice(Context& context, const Text& text, size_t begin, size_t end) {
  TextBuilder slice(context);
  for (const Piece& piece : text.pieces) {
    const size_t size = piece.bytes.size();
    if (begin < size && end > 0) {
      slice.Add(piece.bytes.substr(begin, std::min(end, size) - begin), piece.is_trusted);
    }
    begin -= std::min(begin, size);
    end -= std::min(end, size);
    if (end == 0) break;
    context.Charge(1);
  }
  return slice.Take(text.is_markup);
}

Value AsMarkup(Context& context, const Text& text) {
  Text markup = text;
  markup.is_markup = true;
  return String(context.New(markup));
}

const Text* Escape(Context& context, const Text* source) {
  if (source->is_markup) return source;
  const Text& text = *source;
  static constexpr std::string_view kMarks = "&<>'\"";
  static constexpr std::array<std::string_view, kMarks.size()> kEscapes = {"&amp;", "&lt;", "&gt;",
                                                                           "&#39;", "&#34;"};
  context.ChargeBytes(text.size_bytes);
  TextBuilder escaped(context);
  for (const Piece& piece : text.pieces) {
    std::string_view rest = piece.bytes;
    while (!rest.empty() && !context.failed()) {
      const size_t at = rest.find_first_of(kMarks);
      escaped.Add(rest.substr(0, at), piece.is_trusted);
      if (at == rest.npos) break;
      escaped.Add(kEscapes[kMarks.find(rest[at])], piece.is_trusted);
      rest.remove_prefix(at + 1);
    }
  }
  return escaped.Take(/*is_markup=*/true).text;
}

std::pair<size_t, size_t> StrippedRange(std::string_view bytes, bool left, bool right,
                                        std::string_view characters) {
  size_t begin = 0;
  size_t end = 0;
  bool at_begin = left;
  for (size_t position = 0; position < bytes.size();) {
    const std::string_view rest = bytes.substr(position);
    const size_t size = CharacterBytes(rest);
    const bool goes =
        characters.empty() ? IsWhiteSpace(rest) : characters.contains(rest.substr(0, size));
    position += size;
    if (goes && at_begin) begin = position;
    if (!goes) {
      at_begin = false;
      end = position;
      if (!right) break;
    }
  }
  if (!right) end = bytes.size();
  return {begin, std::max(begin, end)};
}

// Bytes of characters outside ASCII count as letters.
bool IsLetter(char byte) {
  const char lower = ToLower(byte);
  return (lower >= 'a' && lower <= 'z') || static_cast<unsigned char>(byte) >= 0x80;
}

}  // namespace cria::jinja
