#include "converter/gguf/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/tokenizer/byte_level_pieces.h"
#include "converter/tokenizer/piece_text.h"
#include "converter/tokenizer/scored_pieces.h"
#include "converter/tokenizer/split_patterns_by_name.h"
#include "core/format.h"
#include "core/quotable.h"
#include "core/utf8.h"

namespace cria {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTokenTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kAddBos = "tokenizer.ggml.add_bos_token";
constexpr std::string_view kChatTemplate = "tokenizer.chat_template";
constexpr std::string_view kNamedChatTemplates = "tokenizer.chat_templates";

std::string ElementName(std::string_view key, size_t index) { return Format("{}[{}]", key, index); }

bool IsUtf8(std::string_view text) { return ValidUtf8Prefix(text) == text.size(); }

class TokenizerReader {
 public:
  explicit TokenizerReader(const GgufMetadata& metadata) : metadata_(metadata) {}

  Result<TokenizerMaterial> Read() {
    CRIA_ASSIGN_OR_RETURN(const std::string model, metadata_.String("tokenizer.ggml.model"));
    CRIA_ASSIGN_OR_RETURN(tokens_, metadata_.Array<StringList>(kTokens));
    CRIA_RETURN_IF_ERROR(ReadTypes());
    if (model == "llama") {
      CRIA_RETURN_IF_ERROR(ReadScoredPieces());
    } else if (IsGemma4(model)) {
      CRIA_RETURN_IF_ERROR(ReadGemma4Pieces());
    } else if (model == "gpt2") {
      CRIA_RETURN_IF_ERROR(ReadByteLevelPieces());
    } else {
      return metadata_.Bad(
          "tokenizer.ggml.model",
          Format("is \"{}\"; this version converts llama, gpt2 and gemma4", Quotable(model)),
          ErrorCode::kUnsupported);
    }
    CRIA_RETURN_IF_ERROR(ReadSpecialTokens());
    CRIA_RETURN_IF_ERROR(ReadChatTemplate());
    draft().marks_may_be_text = true;
    material_.where = metadata_.where();
    return std::move(material_);
  }

 private:
  VocabularyDraft& draft() { return material_.draft; }

  // If the file has no types, every token is text.
  Status ReadTypes() {
    types_.assign(tokens_->size(), PieceType::kNormal);
    if (!metadata_.Has(kTokenTypes)) return {};
    CRIA_ASSIGN_OR_RETURN(const auto* types, metadata_.Array<std::vector<int64_t>>(kTokenTypes));
    CRIA_RETURN_IF_ERROR(CheckSize(kTokenTypes, types->size()));
    // The numbers are SentencePiece's; writers use 0 for tokens without a type.
    constexpr std::array kTypes = {
        PieceType::kNormal,      PieceType::kNormal, PieceType::kUnknown, PieceType::kControl,
        PieceType::kUserDefined, PieceType::kUnused, PieceType::kByte};
    for (size_t i = 0; i < types->size(); ++i) {
      const int64_t number = (*types)[i];
      if (number < 0 || static_cast<size_t>(number) >= kTypes.size()) {
        return metadata_.Bad(ElementName(kTokenTypes, i),
                             Format("is {}, which is not a type", number));
      }
      types_[i] = kTypes[static_cast<size_t>(number)];
    }
    return {};
  }

  Status CheckSize(std::string_view key, size_t size) const {
    if (size == tokens_->size()) return {};
    return metadata_.Bad(key,
                         Format("has {} elements, but there are {} tokens", size, tokens_->size()));
  }

  Status ReadScoredPieces() {
    CRIA_ASSIGN_OR_RETURN(const auto* scores, metadata_.Array<std::vector<double>>(kScores));
    CRIA_RETURN_IF_ERROR(CheckSize(kScores, scores->size()));
    std::vector<ScoredPiece> pieces;
    pieces.reserve(tokens_->size());
    for (size_t i = 0; i < tokens_->size(); ++i) {
      pieces.push_back({(*tokens_)[i], static_cast<float>((*scores)[i]), types_[i]});
    }
    CRIA_RETURN_IF_ERROR(CheckTextPieces());
    CRIA_ASSIGN_OR_RETURN(draft(), DraftOfScoredPieces(pieces, metadata_.where()));
    TokenizerRules& rules = draft().rules;
    rules.byte_fallback = std::ranges::contains(types_, PieceType::kByte);
    CRIA_ASSIGN_OR_RETURN(rules.add_dummy_prefix,
                          metadata_.Bool("tokenizer.ggml.add_space_prefix", true));
    rules.dummy_prefix_after_special = rules.add_dummy_prefix;
    CRIA_ASSIGN_OR_RETURN(rules.remove_extra_whitespaces,
                          metadata_.Bool("tokenizer.ggml.remove_extra_whitespaces", false));
    CRIA_ASSIGN_OR_RETURN(rules.add_bos_token, metadata_.Bool(kAddBos, true));
    return MarkPhi3Tokens();
  }

  // Newer files have the name of the pre-tokenizer instead.
  bool IsGemma4(std::string_view model) const {
    constexpr std::string_view kName = "gemma4";
    const auto* pre_tokenizer = metadata_.Find<std::string>("tokenizer.ggml.pre");
    return model == kName ||
           (model == "gpt2" && pre_tokenizer != nullptr && *pre_tokenizer == kName);
  }

  // Text pieces and merges as in SentencePiece's models, but the merges are listed.
  Status ReadGemma4Pieces() {
    TokenizerRules& rules = draft().rules;
    rules.family = TokenizerFamily::kSentencePieceBpe;
    rules.byte_fallback = std::ranges::contains(types_, PieceType::kByte);
    CRIA_ASSIGN_OR_RETURN(rules.add_dummy_prefix,
                          metadata_.Bool("tokenizer.ggml.add_space_prefix", false));
    rules.dummy_prefix_after_special = rules.add_dummy_prefix;
    rules.add_bos_token = true;  // llama.cpp does so whatever the file says.
    for (uint32_t id = 0; id < tokens_->size(); ++id) {
      const std::string_view text = (*tokens_)[id];
      if (!IsUtf8(text)) return metadata_.Bad(ElementName(kTokens, id), "is not UTF-8");
      const auto byte = ByteOfPieceName(text);
      if (types_[id] == PieceType::kByte && !byte) {
        return metadata_.Bad(ElementName(kTokens, id), "is not a byte, but has this type");
      }
      const bool is_text = types_[id] == PieceType::kNormal;
      draft().SetPiece(id,
                       types_[id] == PieceType::kByte ? std::string(1, static_cast<char>(*byte))
                       : is_text                      ? WithPlainSpaces(text)
                                                      : std::string(text),
                       types_[id]);
    }
    CRIA_RETURN_IF_ERROR(CheckTextPieces());
    return ReadMerges();
  }

  // Phi 3's special tokens take the white space after them, but for these. Files do not say so;
  // llama.cpp knows it by the model's name.
  Status MarkPhi3Tokens() {
    constexpr std::array<std::string_view, 3> kOthers = {"<unk>", "<s>", "<|endoftext|>"};
    CRIA_ASSIGN_OR_RETURN(const std::string architecture,
                          metadata_.String("general.architecture", ""));
    if (architecture != "phi3") return {};
    for (DraftPiece& piece : draft().pieces) {
      const bool is_special =
          piece.type == PieceType::kControl || piece.type == PieceType::kUserDefined;
      piece.rstrip = is_special && !std::ranges::contains(kOthers, piece.bytes);
    }
    return {};
  }

  // If two tokens had the same text, it would not be clear which of them the text becomes.
  Status CheckTextPieces() {
    for (uint32_t id = 0; id < tokens_->size(); ++id) {
      if (names_.Add((*tokens_)[id], id) || types_[id] != PieceType::kNormal) continue;
      return metadata_.Bad(ElementName(kTokens, id),
                           Format("is \"{}\", which already exists", Quotable((*tokens_)[id])));
    }
    return {};
  }

  Status ReadByteLevelPieces() {
    CRIA_ASSIGN_OR_RETURN(const PreTokenizer* pre_tokenizer, ReadPreTokenizer());
    TokenizerRules& rules = draft().rules;
    rules.family = TokenizerFamily::kByteLevelBpe;
    draft().split_patterns.assign(pre_tokenizer->split_patterns.begin(),
                                  pre_tokenizer->split_patterns.end());
    rules.normalize_nfc = pre_tokenizer->normalize_nfc;
    rules.ignore_merges = pre_tokenizer->ignore_merges;
    CRIA_ASSIGN_OR_RETURN(rules.add_bos_token,
                          metadata_.Bool(kAddBos, pre_tokenizer->add_bos_token));
    for (uint32_t id = 0; id < tokens_->size(); ++id) CRIA_RETURN_IF_ERROR(AddByteLevelPiece(id));
    CRIA_RETURN_IF_ERROR(CheckTextPieces());
    return ReadMerges();
  }

  Result<const PreTokenizer*> ReadPreTokenizer() const {
    constexpr std::string_view kKey = "tokenizer.ggml.pre";
    if (!metadata_.Has(kKey)) {
      return metadata_.Bad(kKey,
                           "is missing, so it is not known how text is split into words; use a "
                           "file from a newer converter",
                           ErrorCode::kUnsupported);
    }
    CRIA_ASSIGN_OR_RETURN(const std::string name, metadata_.String(kKey));
    if (const PreTokenizer* found = FindPreTokenizer(name)) return found;
    return metadata_.Bad(kKey,
                         Format("is \"{}\", which this version does not know", Quotable(name)),
                         ErrorCode::kUnsupported);
  }

  Status AddByteLevelPiece(uint32_t id) {
    const std::string_view text = (*tokens_)[id];
    if (!IsUtf8(text)) return metadata_.Bad(ElementName(kTokens, id), "is not UTF-8");
    switch (types_[id]) {
      case PieceType::kNormal: {
        const auto bytes = alphabet_.Decode(text);
        if (!bytes) {
          return metadata_.Bad(ElementName(kTokens, id),
                               Format("is \"{}\", which has characters outside the byte-level "
                                      "alphabet",
                                      Quotable(text)));
        }
        draft().SetPiece(id, *bytes, PieceType::kNormal);
        return {};
      }
      case PieceType::kControl:
      case PieceType::kUserDefined:
        draft().SetPiece(id, std::string(text), types_[id]);
        return {};
      case PieceType::kUnknown:
      case PieceType::kUnused:
        draft().SetPiece(id, "", PieceType::kUnused);
        return {};
      case PieceType::kByte:
        break;
    }
    return metadata_.Bad(ElementName(kTokenTypes, id),
                         "has the type byte, which byte-level vocabularies do not have");
  }

  Status ReadMerges() {
    CRIA_ASSIGN_OR_RETURN(const auto* merges, metadata_.Array<StringList>(kMerges));
    for (size_t i = 0; i < merges->size(); ++i) {
      const std::string_view text = (*merges)[i];
      const size_t space = text.find(' ', 1);
      if (space == std::string_view::npos) {
        return metadata_.Bad(ElementName(kMerges, i), Format("is \"{}\", not two tokens with "
                                                             "one space between",
                                                             Quotable(text)));
      }
      const auto merge =
          names_.FindMerge(text.substr(0, space), text.substr(space + 1), static_cast<uint32_t>(i));
      if (!merge) {
        return metadata_.Bad(
            ElementName(kMerges, i),
            Format("is \"{}\": these two and what they make are not all tokens", Quotable(text)));
      }
      draft().merges.push_back(*merge);
    }
    return {};
  }

  // Some writers write -1, or a number with all bits set, for a token that does not exist.
  Result<std::optional<uint32_t>> ReadTokenId(std::string_view name) const {
    const std::string key = Format("tokenizer.ggml.{}_token_id", name);
    if (!metadata_.Has(key)) return std::nullopt;
    const auto* id = metadata_.Find<int64_t>(key);
    if (id == nullptr) return metadata_.Bad(key, "is not one whole number");
    if (*id == -1 || *id == std::numeric_limits<uint32_t>::max()) return std::nullopt;
    if (*id >= 0 && static_cast<uint64_t>(*id) < tokens_->size()) {
      return static_cast<uint32_t>(*id);
    }
    return metadata_.Bad(key, Format("is {}, but there are {} tokens", *id, tokens_->size()));
  }

  Status ReadSpecialTokens() {
    TokenizerRules& rules = draft().rules;
    CRIA_ASSIGN_OR_RETURN(const auto bos, ReadTokenId("bos"));
    if (bos) rules.bos_token_id = static_cast<int32_t>(*bos);
    if (!bos && metadata_.Has(kAddBos) && rules.add_bos_token) {
      return metadata_.Bad(kAddBos, "is true, but tokenizer.ggml.bos_token_id is not a token");
    }
    rules.add_bos_token = rules.add_bos_token && bos;
    CRIA_ASSIGN_OR_RETURN(const auto unknown, ReadTokenId("unknown"));
    if (unknown && rules.family == TokenizerFamily::kSentencePieceBpe) {
      rules.unk_token_id = static_cast<int32_t>(*unknown);
    }
    CRIA_ASSIGN_OR_RETURN(const bool adds_eos,
                          metadata_.Bool("tokenizer.ggml.add_eos_token", false));
    for (const std::string_view name : {"eos", "eot", "eom"}) {
      CRIA_ASSIGN_OR_RETURN(const auto id, ReadTokenId(name));
      if (id) material_.settings.eos_token_ids.push_back(*id);
      if (id && name == "eos" && adds_eos) rules.appended_token_id = static_cast<int32_t>(*id);
    }
    return {};
  }

  Status ReadChatTemplate() {
    ChatTemplateSource& source = material_.settings.chat_template;
    CRIA_ASSIGN_OR_RETURN(source.text, metadata_.String(kChatTemplate, ""));
    source.where = metadata_.where();
    if (source.text.empty() && metadata_.Has(kNamedChatTemplates)) {
      source.note = source.where +
                    ": its chat templates have names, and none is the default: the "
                    "model gets no chat template";
    }
    if (IsUtf8(source.text)) return {};
    return metadata_.Bad(kChatTemplate, "is not UTF-8");
  }

  const GgufMetadata& metadata_;
  const StringList* tokens_ = nullptr;
  std::vector<PieceType> types_;
  PieceNames names_;  // The names in the file.
  ByteAlphabet alphabet_;
  TokenizerMaterial material_;
};

}  // namespace

Result<TokenizerMaterial> ReadGgufTokenizer(const GgufMetadata& metadata) {
  return TokenizerReader(metadata).Read();
}

}  // namespace cria
