#include "text/detokenizer.h"

#include <algorithm>

namespace cria {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, const DetokenizerOptions& options)
    : vocabulary_(tokenizer.vocabulary()),
      strip_space_(options.at_text_start && vocabulary_.add_dummy_prefix),
      input_(pending_.size() + tokenizer.longest_piece_bytes()),
      output_(input_.size() * kReplacementCharacter.size()) {}

std::string_view Detokenizer::Append(int32_t id) {
  if (id < 0 || static_cast<size_t>(id) >= vocabulary_.size()) return {};
  const PieceType type = vocabulary_.piece_types[static_cast<size_t>(id)];
  // A character never continues after such a token.
  if (type == PieceType::kControl || type == PieceType::kUnknown) return AppendBytes({}, true);
  std::string_view piece = vocabulary_.piece(static_cast<size_t>(id));
  if (strip_space_ && !piece.empty()) {
    strip_space_ = false;
    if (type != PieceType::kUserDefined && piece.front() == ' ') piece.remove_prefix(1);
  }
  return AppendBytes(piece, false);
}

std::string_view Detokenizer::Flush() {
  strip_space_ = vocabulary_.add_dummy_prefix;
  return AppendBytes({}, true);
}

std::string_view Detokenizer::AppendBytes(std::string_view bytes, bool ends_text) {
  std::ranges::copy_n(pending_.begin(), static_cast<ptrdiff_t>(pending_bytes_), input_.begin());
  std::ranges::copy(bytes, input_.begin() + static_cast<ptrdiff_t>(pending_bytes_));
  std::string_view rest(input_.data(), pending_bytes_ + bytes.size());
  pending_bytes_ = 0;
  output_bytes_ = 0;
  while (!rest.empty()) {
    const Utf8Character character = FirstUtf8Character(rest);
    if (character.state == Utf8State::kIncomplete && !ends_text) {
      std::ranges::copy(rest, pending_.begin());
      pending_bytes_ = rest.size();
      break;
    }
    Emit(character.state == Utf8State::kValid ? rest.substr(0, character.size_bytes)
                                              : kReplacementCharacter);
    rest.remove_prefix(character.size_bytes);
  }
  return {output_.data(), output_bytes_};
}

void Detokenizer::Emit(std::string_view text) {
  std::ranges::copy(text, output_.begin() + static_cast<ptrdiff_t>(output_bytes_));
  output_bytes_ += text.size();
}

}  // namespace cria
