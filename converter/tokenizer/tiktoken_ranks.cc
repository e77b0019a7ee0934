#include "converter/tokenizer/tiktoken_ranks.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converter/tokenizer/split_patterns_by_name.h"
#include "core/format.h"

namespace cria {
namespace {

// The file does not say how text is split into words. Llama 3's pattern is used, so Llama 3's first
// special token must exist.
constexpr std::string_view kLlama3Bos = "<|begin_of_text|>";

std::optional<std::string> DecodeBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0) return {};
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    std::string_view group = text.substr(i, 4);
    if (i + 4 == text.size()) {
      for (int pad = 0; pad < 2 && group.ends_with('='); ++pad) group.remove_suffix(1);
    }
    uint32_t bits = 0;
    for (const char digit : group) {
      const size_t value = kDigits.find(digit);
      if (value == std::string_view::npos) return {};
      bits = (bits << 6) | static_cast<uint32_t>(value);
    }
    bits <<= 6 * (4 - group.size());
    for (size_t byte = 0; byte + 1 < group.size(); ++byte) {
      bytes.push_back(static_cast<char>(bits >> (16 - 8 * byte)));
    }
  }
  return bytes;
}

Status ReadLine(std::string_view line, size_t line_number, std::string_view where,
                VocabularyDraft* draft) {
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: line {} {}", where, line_number, what));
  };
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) {
    return bad("is neither SentencePiece's format nor a token in base64 and a rank");
  }
  const auto bytes = DecodeBase64(line.substr(0, space));
  if (!bytes || bytes->empty()) return bad("does not begin with a token in base64");
  uint32_t rank = 0;
  const auto [end, error] =
      std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
  if (error != std::errc() || end != line.data() + line.size()) return bad("has no rank");
  if (rank != draft->pieces.size() || rank >= kMaxDraftPieces) {
    return bad(Format("has the rank {} instead of {}", rank, draft->pieces.size()));
  }
  draft->SetPiece(rank, *bytes, PieceType::kNormal);
  return {};
}

}  // namespace

Result<VocabularyDraft> ReadTiktokenRanks(std::string_view file,
                                          std::span<const AddedToken> added_tokens,
                                          std::string_view where) {
  VocabularyDraft draft;
  size_t line_number = 0;
  while (!file.empty()) {
    ++line_number;
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (!line.empty()) CRIA_RETURN_IF_ERROR(ReadLine(line, line_number, where, &draft));
  }
  if (!std::ranges::contains(added_tokens, kLlama3Bos, &AddedToken::content)) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: has tiktoken's ranks, of which only Llama 3's are supported, but "
                       "tokenizer_config.json in the same folder has no special token {}. Put the "
                       "checkpoint's tokenizer.json there",
                       where, kLlama3Bos));
  }
  draft.rules.family = TokenizerFamily::kByteLevelBpe;
  draft.split_patterns.emplace_back(kLlama3Pattern);
  // A word that is a token is not split, and neighbours are merged in the order of the results'
  // ranks.
  draft.rules.ignore_merges = true;
  std::vector<uint32_t> ranks(draft.pieces.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  CRIA_RETURN_IF_ERROR(draft.AddMergesOfAllSplits(ranks, where));
  const uint32_t first_added = std::ranges::min(added_tokens, {}, &AddedToken::id).id;
  if (first_added > draft.pieces.size()) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: has {} ranks, but the first special token has the id {}; the file "
                       "may have been cut short: copy it again",
                       where, draft.pieces.size(), first_added));
  }
  for (const AddedToken& token : added_tokens) CRIA_RETURN_IF_ERROR(draft.AddToken(token, where));
  draft.rules.bos_token_id = draft.FindSpecial(kLlama3Bos);
  draft.rules.add_bos_token = true;
  return draft;
}

}  // namespace cria
