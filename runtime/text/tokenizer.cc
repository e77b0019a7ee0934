#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/characters.h"
#include "core/format.h"
#include "core/utf8.h"
#include "text/byte_pair_merger.h"
#include "text/nfc.h"

namespace cria {
namespace {

// Offsets are 32-bit internally.
constexpr size_t kMaxTextBytes = size_t{1} << 30;

constexpr std::string_view kLowerOneEighthBlock = "\xE2\x96\x81";  // U+2581, SentencePiece's space.

std::vector<uint32_t> IdsOfTypes(const Vocabulary& vocabulary,
                                 std::initializer_list<PieceType> types) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (std::ranges::contains(types, vocabulary.piece_types[id])) ids.push_back(id);
  }
  return ids;
}

bool HasInnerWordBegin(std::string_view piece) {
  for (size_t i = 1; i < piece.size(); ++i) {
    if (piece[i] == ' ' && piece[i - 1] != ' ') return true;
  }
  return false;
}

// What SentencePiece does with the spaces of a text.
struct SpaceRules {
  bool add_prefix;
  bool prefix_unless_space;  // Text that begins with a space gets no prefix.
  bool remove_extra;         // Several spaces become one.
  bool strip_begin;          // Spaces at the beginning are removed.
  bool strip_end;            // Spaces at the end are removed.
};

// The text as SentencePiece normalizes it, but with spaces instead of U+2581. Between words, only
// spaces are removed; at the end, U+2581 is removed, too. A text that has only spaces gets no
// prefix.
std::string NormalizeSpaces(std::string_view text, const SpaceRules& rules) {
  if (rules.strip_begin) text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::string normalized;
  if (text.empty()) return normalized;
  normalized.reserve(text.size() + 1);
  const bool begins_with_space = text[0] == ' ' || text.starts_with(kLowerOneEighthBlock);
  if (rules.add_prefix && !(rules.prefix_unless_space && begins_with_space)) {
    normalized.push_back(' ');
  }
  bool after_space = false;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      if (!rules.remove_extra || !after_space) normalized.push_back(' ');
      after_space = true;
      ++i;
    } else if (text[i] == kLowerOneEighthBlock[0] &&
               text.substr(i).starts_with(kLowerOneEighthBlock)) {
      normalized.push_back(' ');
      after_space = false;
      i += kLowerOneEighthBlock.size();
    } else {
      normalized.push_back(text[i]);
      after_space = false;
      ++i;
    }
  }
  if (rules.strip_end) normalized.erase(normalized.find_last_not_of(' ') + 1);
  return normalized;
}

// The bytes of white space at the beginning, as the regular expression \s means it: unlike Python,
// without U+001C to U+001F.
size_t WhiteSpaceBytes(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && IsWhiteSpace(text.substr(size)) &&
         !(text[size] >= '\x1C' && text[size] <= '\x1F')) {
    size += CharacterBytes(text.substr(size));
  }
  return size;
}

std::unexpected<Error> TooManyTokens(size_t max_tokens) {
  return Fail(
      ErrorCode::kOutOfRange,
      Format("the prompt has more than {} tokens, which do not fit into the context", max_tokens),
      RemedyKind::kLargerContext);
}

}  // namespace

// The state of one call of EncodeSegments.
class Tokenizer::Encoding {
 public:
  Encoding(const Vocabulary& vocabulary, size_t token_limit)
      : max_tokens(token_limit), merger(vocabulary) {}

  const size_t max_tokens;
  std::vector<int32_t> ids;
  std::string text;                 // Text after the last special token, not encoded yet.
  size_t text_begin = 0;            // Index in `ids` of the first token of the current text.
  bool after_user_defined = false;  // The token before the current text is user-defined.
  bool drops_space = false;         // White space here belongs to the token before.
  BytePairMerger merger;
  std::vector<std::string>* left_out = nullptr;  // Gets what has no token, if it is wanted.
};

Tokenizer::Tokenizer(const Vocabulary& vocabulary)
    : vocabulary_(vocabulary),
      user_defined_tokens_(vocabulary, IdsOfTypes(vocabulary, {PieceType::kUserDefined})),
      special_tokens_(vocabulary,
                      IdsOfTypes(vocabulary, {PieceType::kUserDefined, PieceType::kControl})) {}

Result<Tokenizer> Tokenizer::Create(const Vocabulary& vocabulary) {
  Tokenizer tokenizer(vocabulary);
  tokenizer.IndexPieces();
  CRIA_ASSIGN_OR_RETURN(tokenizer.split_patterns_,
                        SplitPatterns::Compile(vocabulary.split_patterns));
  return tokenizer;
}

void Tokenizer::IndexPieces() {
  text_byte_ids_.fill(-1);
  fallback_byte_ids_.fill(-1);
  for (size_t id = 0; id < vocab_size(); ++id) {
    const std::string_view piece = vocabulary_.piece(id);
    longest_piece_bytes_ = std::max(longest_piece_bytes_, piece.size());
    if (vocabulary_.piece_types[id] == PieceType::kByte) {
      fallback_byte_ids_[static_cast<uint8_t>(piece[0])] = static_cast<int32_t>(id);
    } else if (vocabulary_.family == TokenizerFamily::kSentencePieceBpe &&
               vocabulary_.piece_types[id] != PieceType::kControl && HasInnerWordBegin(piece)) {
      spaces_begin_words_ = false;
    }
  }
  for (const uint32_t id : vocabulary_.sorted_ids) {
    const std::string_view piece = vocabulary_.piece(id);
    const auto first = static_cast<uint8_t>(piece[0]);
    if (piece.size() == 1) text_byte_ids_[first] = static_cast<int32_t>(id);
    ++first_byte_[first + size_t{1}];
  }
  for (size_t byte = 0; byte < 256; ++byte) first_byte_[byte + 1] += first_byte_[byte];
  const bool is_byte_level = vocabulary_.family == TokenizerFamily::kByteLevelBpe;
  expresses_every_byte_ =
      (is_byte_level || vocabulary_.byte_fallback) &&
      !std::ranges::contains(is_byte_level ? text_byte_ids_ : fallback_byte_ids_, -1);
}

size_t Tokenizer::MinTokens(std::string_view text) const {
  const bool is_sentence_piece = vocabulary_.family == TokenizerFamily::kSentencePieceBpe;
  size_t kept_bytes = text.size();
  if (!expresses_every_byte_) {
    // One token may stand for any number of characters that have no piece, or none may.
    if (is_sentence_piece || vocabulary_.unk_token_id >= 0 || vocabulary_.normalize_nfc) return 0;
    kept_bytes -= static_cast<size_t>(std::ranges::count_if(
        text, [this](char byte) { return text_byte_ids_[static_cast<uint8_t>(byte)] < 0; }));
  }
  // Such a token takes any number of white space.
  if (!vocabulary_.rstrip_ids.empty()) return 0;
  if (is_sentence_piece && vocabulary_.remove_extra_whitespaces) {
    kept_bytes -= static_cast<size_t>(std::ranges::count(text, ' '));
    // Spaces that are written as U+2581 are removed at the end of a text.
    for (size_t at = text.find(kLowerOneEighthBlock); at != std::string_view::npos;
         at = text.find(kLowerOneEighthBlock, at + kLowerOneEighthBlock.size())) {
      kept_bytes -= kLowerOneEighthBlock.size();
    }
  }
  // How many bytes become one byte at most. SentencePiece turns U+2581 into a space. NFC composes a
  // code point of two bytes or more from at most four code points, which have at most 16 bytes, and
  // turns single code points, of at most four bytes, into ASCII.
  const size_t max_bytes_per_byte =
      (is_sentence_piece ? kLowerOneEighthBlock.size() : 1) * (vocabulary_.normalize_nfc ? 8 : 1);
  return kept_bytes / (max_bytes_per_byte * longest_piece_bytes_);
}

size_t Tokenizer::MaxUnmerged(const Encoding& encoding, size_t begin) const {
  // Every id stands for at least one byte, so the ids that are merged into one token are at most as
  // many as the longest piece has bytes.
  const size_t left = encoding.max_tokens - std::min(begin, encoding.max_tokens);
  return left > (SIZE_MAX - begin) / longest_piece_bytes_ ? SIZE_MAX
                                                          : begin + left * longest_piece_bytes_;
}

std::string_view Tokenizer::Piece(int32_t id) const {
  if (id < 0 || static_cast<size_t>(id) >= vocab_size()) return {};
  return vocabulary_.piece(static_cast<size_t>(id));
}

int32_t Tokenizer::FindPiece(std::string_view bytes) const {
  const auto first = static_cast<uint8_t>(bytes[0]);
  const auto candidates = vocabulary_.sorted_ids.subspan(
      first_byte_[first], first_byte_[first + size_t{1}] - first_byte_[first]);
  const auto found = std::ranges::lower_bound(
      candidates, bytes, {}, [this](uint32_t id) { return vocabulary_.piece(id); });
  if (found == candidates.end() || vocabulary_.piece(*found) != bytes) return -1;
  return static_cast<int32_t>(*found);
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                               const EncodeOptions& options) const {
  const TextSegment segment{text, options.parse_special};
  return EncodeSegments({&segment, 1}, options.add_bos, options.max_tokens);
}

Result<std::vector<int32_t>> Tokenizer::EncodeSegments(std::span<const TextSegment> segments,
                                                       std::optional<bool> add_bos,
                                                       size_t max_tokens) const {
  size_t text_bytes = 0;
  size_t min_tokens = 0;
  for (const TextSegment& segment : segments) {
    if (segment.text.size() > kMaxTextBytes - text_bytes) {
      return Fail(
          ErrorCode::kOutOfRange,
          Format("The text is longer than {} bytes; give it in smaller parts", kMaxTextBytes));
    }
    text_bytes += segment.text.size();
    min_tokens += MinTokens(segment.text);
    if (min_tokens > max_tokens) return TooManyTokens(max_tokens);
  }

  Encoding encoding(vocabulary_, max_tokens);
  CRIA_RETURN_IF_ERROR(EncodeInto(segments, &encoding));
  std::vector<int32_t>& ids = encoding.ids;
  const int32_t bos = vocabulary_.bos_token_id;
  if (add_bos.value_or(vocabulary_.add_bos_token) && bos >= 0 &&
      (ids.empty() || ids.front() != bos)) {
    ids.insert(ids.begin(), bos);
  }
  return std::move(ids);
}

std::vector<std::string> Tokenizer::LeftOut(std::string_view text) const {
  std::vector<std::string> left_out;
  const auto has_no_piece = [this](char byte) {
    return text_byte_ids_[static_cast<uint8_t>(byte)] < 0;
  };
  if (expresses_every_byte_ || vocabulary_.unk_token_id >= 0 || text.size() > kMaxTextBytes ||
      !std::ranges::any_of(text, has_no_piece)) {
    return left_out;
  }
  Encoding encoding(vocabulary_, SIZE_MAX);
  encoding.left_out = &left_out;
  const TextSegment segment{text, /*parse_special=*/false};
  // If the text cannot be encoded, Encode says so.
  (void)EncodeInto({&segment, 1}, &encoding);
  return left_out;
}

Status Tokenizer::EncodeInto(std::span<const TextSegment> segments, Encoding* into) const {
  Encoding& encoding = *into;
  for (const TextSegment& segment : segments) {
    const SpecialTokenFinder& finder =
        segment.parse_special ? special_tokens_ : user_defined_tokens_;
    size_t position = 0;
    const auto drop_space = [&] {
      if (!encoding.drops_space) return;
      position += WhiteSpaceBytes(segment.text.substr(position));
      encoding.drops_space = position == segment.text.size();
    };
    drop_space();
    while (const auto match = finder.Find(segment.text, position)) {
      encoding.text += segment.text.substr(position, match->offset - position);
      const bool is_user_defined =
          vocabulary_.piece_types[static_cast<size_t>(match->id)] == PieceType::kUserDefined;
      CRIA_RETURN_IF_ERROR(EncodeText(is_user_defined, into));
      encoding.after_user_defined = is_user_defined;
      encoding.ids.push_back(match->id);
      position = match->offset + match->size_bytes;
      encoding.drops_space =
          std::ranges::binary_search(vocabulary_.rstrip_ids, static_cast<uint32_t>(match->id));
      drop_space();
    }
    encoding.text += segment.text.substr(position);
  }
  return EncodeText(false, into);
}

// Encodes the text after the last special token; it contains no special token.
Status Tokenizer::EncodeText(bool before_user_defined, Encoding* encoding) const {
  std::string text = std::exchange(encoding->text, {});
  if (text.empty()) return {};
  if (vocabulary_.normalize_nfc) text = NormalizeToNfc(std::move(text));
  encoding->text_begin = encoding->ids.size();
  if (vocabulary_.family == TokenizerFamily::kByteLevelBpe) {
    return split_patterns_.Split(text,
                                 [&](std::string_view word) { return EncodeWord(word, encoding); });
  }
  const bool at_begin = encoding->ids.empty();
  const bool remove_extra = vocabulary_.remove_extra_whitespaces;
  // User-defined tokens are part of a text, control tokens are between texts.
  const SpaceRules rules = {.add_prefix = vocabulary_.add_dummy_prefix &&
                                          (at_begin || vocabulary_.dummy_prefix_after_special),
                            .prefix_unless_space = vocabulary_.dummy_prefix_unless_space,
                            .remove_extra = remove_extra,
                            .strip_begin = remove_extra && !encoding->after_user_defined,
                            .strip_end = remove_extra && !before_user_defined};
  return EncodeSentence(NormalizeSpaces(text, rules), encoding);
}

Status Tokenizer::EncodeSentence(std::string_view text, Encoding* encoding) const {
  size_t begin = encoding->ids.size();
  size_t max_ids = MaxUnmerged(*encoding, begin);
  for (size_t position = 0; position < text.size();) {
    // Merging word by word gives the same tokens as merging the whole text, and is faster.
    if (spaces_begin_words_ && position > 0 && text[position] == ' ' && text[position - 1] != ' ') {
      encoding->merger.Merge(encoding->ids, begin);
      begin = encoding->ids.size();
      max_ids = MaxUnmerged(*encoding, begin);
    }
    if (encoding->ids.size() > max_ids) return TooManyTokens(encoding->max_tokens);
    const Utf8Character character = FirstUtf8Character(text.substr(position));
    const bool valid = character.state == Utf8State::kValid;
    const std::string_view bytes = text.substr(position, valid ? character.size_bytes : 1);
    position += bytes.size();
    const int32_t id = !valid              ? -1
                       : bytes.size() == 1 ? text_byte_ids_[static_cast<uint8_t>(bytes[0])]
                                           : FindPiece(bytes);
    if (id >= 0) {
      encoding->ids.push_back(id);
    } else {
      PushUnknown(bytes, encoding);
    }
  }
  encoding->merger.Merge(encoding->ids, begin);
  return {};
}

Status Tokenizer::EncodeWord(std::string_view word, Encoding* encoding) const {
  if (encoding->ids.size() > encoding->max_tokens) return TooManyTokens(encoding->max_tokens);
  if (vocabulary_.ignore_merges) {
    if (const int32_t id = FindPiece(word); id >= 0) {
      encoding->ids.push_back(id);
      return {};
    }
  }
  const size_t begin = encoding->ids.size();
  if (word.size() > begin) encoding->ids.reserve(begin + word.size() + 1);
  for (const char byte : word) {
    const int32_t id = text_byte_ids_[static_cast<uint8_t>(byte)];
    if (id >= 0) {
      encoding->ids.push_back(id);
    } else {
      PushUnknown({&byte, 1}, encoding);
    }
  }
  encoding->merger.Merge(encoding->ids, begin);
  return {};
}

void Tokenizer::PushUnknown(std::string_view character, Encoding* encoding) const {
  std::vector<int32_t>& ids = encoding->ids;
  if (vocabulary_.byte_fallback && std::ranges::all_of(character, [&](char c) {
        return fallback_byte_ids_[static_cast<uint8_t>(c)] >= 0;
      })) {
    for (const char c : character) ids.push_back(fallback_byte_ids_[static_cast<uint8_t>(c)]);
    return;
  }
  if (vocabulary_.unk_token_id < 0) {
    std::vector<std::string>* const left_out = encoding->left_out;
    if (left_out != nullptr && left_out->size() < kMaxLeftOut &&
        !std::ranges::contains(*left_out, character)) {
      left_out->emplace_back(character);
    }
    return;
  }
  const bool after_unknown =
      ids.size() > encoding->text_begin && ids.back() == vocabulary_.unk_token_id;
  if (!after_unknown) ids.push_back(vocabulary_.unk_token_id);
}

}  // namespace cria
