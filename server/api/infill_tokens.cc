#include "server/api/infill_tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace cria::server {
namespace {

struct InfillName {
  std::string_view piece;
  int32_t InfillTokens::* token;
};

// The names in vocabularies of Qwen, StarCoder, Granite, DeepSeek, CodeLlama, CodeGemma and GLM.
constexpr std::array kInfillNames = std::to_array<InfillName>({
    {"<|fim_prefix|>", &InfillTokens::prefix},
    {"<fim_prefix>", &InfillTokens::prefix},
    {"<fim-prefix>", &InfillTokens::prefix},
    {"<｜fim▁begin｜>", &InfillTokens::prefix},
    {"<PRE>", &InfillTokens::prefix},
    {"▁<PRE>", &InfillTokens::prefix},
    {"<|code_prefix|>", &InfillTokens::prefix},
    {"<|fim_suffix|>", &InfillTokens::suffix},
    {"<fim_suffix>", &InfillTokens::suffix},
    {"<fim-suffix>", &InfillTokens::suffix},
    {"<｜fim▁hole｜>", &InfillTokens::suffix},
    {"<SUF>", &InfillTokens::suffix},
    {"▁<SUF>", &InfillTokens::suffix},
    {"<|code_suffix|>", &InfillTokens::suffix},
    {"<|fim_middle|>", &InfillTokens::middle},
    {"<fim_middle>", &InfillTokens::middle},
    {"<fim-middle>", &InfillTokens::middle},
    {"<｜fim▁end｜>", &InfillTokens::middle},
    {"<MID>", &InfillTokens::middle},
    {"▁<MID>", &InfillTokens::middle},
    {"<|code_middle|>", &InfillTokens::middle},
    {"<|fim_pad|>", &InfillTokens::pad},
    {"<fim_pad>", &InfillTokens::pad},
    {"<fim-pad>", &InfillTokens::pad},
    {"<|fim_repo|>", &InfillTokens::repository},
    {"<|repo_name|>", &InfillTokens::repository},
    {"<reponame>", &InfillTokens::repository},
    {"<|file_sep|>", &InfillTokens::file},
    {"<|file_separator|>", &InfillTokens::file},
});

}  // namespace

std::optional<InfillTokens> FindInfillTokens(const Vocabulary& vocabulary) {
  InfillTokens found;
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const PieceType type = vocabulary.piece_types[id];
    if (type != PieceType::kControl && type != PieceType::kUserDefined) continue;
    const auto name = std::ranges::find(kInfillNames, vocabulary.piece(id), &InfillName::piece);
    if (name != kInfillNames.end()) found.*name->token = static_cast<int32_t>(id);
  }
  if (found.prefix < 0 || found.suffix < 0 || found.middle < 0) return std::nullopt;
  return found;
}

}  // namespace cria::server
