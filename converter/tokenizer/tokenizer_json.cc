#include "converter/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "converter/input/json_fields.h"
#include "converter/tokenizer/byte_level_pieces.h"
#include "converter/tokenizer/piece_text.h"
#include "converter/tokenizer/pre_tokenizer_json.h"
#include "core/format.h"
#include "core/quotable.h"
#include "core/utf8.h"

namespace cria {
namespace {

using nlohmann::json;

Result<uint32_t> ReadId(const json* value, std::string_view where, std::string_view path) {
  if (value == nullptr || !value->is_number_unsigned() ||
      value->get<uint64_t>() >= kMaxDraftPieces) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: {} must be a whole number below {}", where, path, kMaxDraftPieces));
  }
  return value->get<uint32_t>();
}

class ModelReader {
 public:
  ModelReader(const json& model, std::string_view where, VocabularyDraft* draft)
      : fields_(model, where, "model"), draft_(draft) {}

  Status Read() {
    CRIA_RETURN_IF_ERROR(CheckSupported());
    CRIA_RETURN_IF_ERROR(ReadVocab());
    CRIA_RETURN_IF_ERROR(CheckUnknown());
    return ReadMerges();
  }

 private:
  Status CheckSupported() const;
  Status ReadVocab();
  Status CheckUnknown() const;
  Status ReadMerges();
  Status AddPiece(const std::string& name, uint32_t id);
  Result<std::pair<std::string, std::string>> ReadPair(const json& merge, size_t index) const;

  JsonFields fields_;
  VocabularyDraft* draft_;
  PieceNames names_;  // The names in the file.
  std::string unk_token_;
  ByteAlphabet alphabet_;
};

Status ModelReader::CheckSupported() const {
  CRIA_ASSIGN_OR_RETURN(const std::string type, fields_.String("type", "BPE"));
  if (type != "BPE") {
    return fields_.Bad(ErrorCode::kUnsupported, "type",
                       Format("is \"{}\"; only \"BPE\" is supported", Quotable(type)));
  }
  const json* dropout = fields_.Find("dropout");
  if (dropout != nullptr && *dropout != 0) {
    return fields_.Bad(ErrorCode::kUnsupported, "dropout", "is set, which is not supported");
  }
  for (const std::string_view affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    CRIA_ASSIGN_OR_RETURN(const std::string text, fields_.String(affix));
    if (!text.empty()) {
      return fields_.Bad(ErrorCode::kUnsupported, affix, "is set, which is not supported");
    }
  }
  CRIA_ASSIGN_OR_RETURN(const bool byte_fallback, fields_.Bool("byte_fallback", false));
  CRIA_ASSIGN_OR_RETURN(const bool fuse_unk, fields_.Bool("fuse_unk", false));
  if (draft_->rules.family == TokenizerFamily::kSentencePieceBpe && !byte_fallback && !fuse_unk) {
    return fields_.Bad(ErrorCode::kUnsupported, "fuse_unk", "must be true if byte_fallback is not");
  }
  return {};
}

Status ModelReader::ReadVocab() {
  CRIA_ASSIGN_OR_RETURN(draft_->rules.byte_fallback, fields_.Bool("byte_fallback", false));
  CRIA_ASSIGN_OR_RETURN(draft_->rules.ignore_merges, fields_.Bool("ignore_merges", false));
  CRIA_ASSIGN_OR_RETURN(unk_token_, fields_.String("unk_token"));
  const json* vocab = fields_.Find("vocab");
  if (vocab == nullptr || !vocab->is_object() || vocab->empty()) {
    return fields_.Bad(ErrorCode::kInvalidFile, "vocab", "must be an object of tokens and ids");
  }
  for (const auto& [name, value] : vocab->items()) {
    CRIA_ASSIGN_OR_RETURN(const uint32_t id,
                          ReadId(&value, fields_.where(),
                                 Format("{}[\"{}\"]", fields_.PathOf("vocab"), Quotable(name))));
    names_.Add(name, id);
    CRIA_RETURN_IF_ERROR(AddPiece(name, id));
  }
  return {};
}

Status ModelReader::AddPiece(const std::string& name, uint32_t id) {
  if (id < draft_->pieces.size() && draft_->pieces[id].type != PieceType::kUnused) {
    return fields_.Bad(ErrorCode::kInvalidFile, "vocab", Format("gives the id {} twice", id));
  }
  if (name == unk_token_) draft_->rules.unk_token_id = static_cast<int32_t>(id);
  if (draft_->rules.family == TokenizerFamily::kByteLevelBpe) {
    const auto bytes = alphabet_.Decode(name);
    draft_->SetPiece(id, bytes.value_or(name), bytes ? PieceType::kNormal : PieceType::kUnused);
  } else if (name == unk_token_) {
    draft_->SetPiece(id, name, PieceType::kUnknown);
  } else if (const auto byte = ByteOfPieceName(name); byte && draft_->rules.byte_fallback) {
    draft_->SetPiece(id, std::string(1, static_cast<char>(*byte)), PieceType::kByte);
  } else {
    draft_->SetPiece(id, WithPlainSpaces(name), PieceType::kNormal);
  }
  return {};
}

// Several unknown bytes in a row become one unknown token, which "fuse_unk" means.
Status ModelReader::CheckUnknown() const {
  CRIA_ASSIGN_OR_RETURN(const bool fuse_unk, fields_.Bool("fuse_unk", false));
  const bool is_byte_level = draft_->rules.family == TokenizerFamily::kByteLevelBpe;
  if (!is_byte_level || fuse_unk || draft_->rules.unk_token_id < 0) return {};
  std::array<bool, 256> has_piece = {};
  for (const DraftPiece& piece : draft_->pieces) {
    if (piece.type == PieceType::kNormal && piece.bytes.size() == 1) {
      has_piece[static_cast<uint8_t>(piece.bytes[0])] = true;
    }
  }
  if (!std::ranges::contains(has_piece, false)) return {};
  return fields_.Bad(ErrorCode::kUnsupported, "fuse_unk",
                     "must be true if there is an unk_token and the vocabulary lacks a byte");
}

Result<std::pair<std::string, std::string>> ModelReader::ReadPair(const json& merge,
                                                                  size_t index) const {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return std::pair(text.substr(0, space), text.substr(space + 1));
    }
  }
  return fields_.Bad(ErrorCode::kInvalidFile, Format("merges[{}]", index),
                     Format("is {}, not two tokens with one space between or as an array; the "
                            "file may be a damaged copy",
                            JsonFields::Text(merge)));
}

Status ModelReader::ReadMerges() {
  CRIA_ASSIGN_OR_RETURN(const json* const merges, fields_.Array("merges"));
  for (size_t i = 0; i < merges->size(); ++i) {
    CRIA_ASSIGN_OR_RETURN(const auto pair, ReadPair((*merges)[i], i));
    const auto merge = names_.FindMerge(pair.first, pair.second, static_cast<uint32_t>(i));
    if (!merge) {
      return fields_.Bad(
          ErrorCode::kInvalidFile, Format("merges[{}]", i),
          Format("makes \"{}\" from \"{}\" and \"{}\", which are not all in "
                 "model.vocab",
                 Quotable(pair.first + pair.second), Quotable(pair.first), Quotable(pair.second)));
    }
    draft_->merges.push_back(*merge);
  }
  return {};
}

bool IsSpecialToken(const json& item) { return item.is_object() && item.contains("SpecialToken"); }

// The id of item `index` of a template, which is a special token.
Result<int32_t> ReadTemplateToken(const JsonFields& fields, const json& single, size_t index) {
  const JsonFields token(single[index]["SpecialToken"], fields.where(),
                         fields.PathOf(Format("single[{}].SpecialToken", index)));
  CRIA_ASSIGN_OR_RETURN(const std::string name, token.String("id"));
  const JsonFields described = fields.Object("special_tokens").Object(name);
  CRIA_ASSIGN_OR_RETURN(const json* const ids, described.Array("ids"));
  if (ids->size() != 1) return described.Bad(ErrorCode::kUnsupported, "ids", "must be one id");
  CRIA_ASSIGN_OR_RETURN(const uint32_t id,
                        ReadId(&ids->front(), fields.where(), described.PathOf("ids[0]")));
  return static_cast<int32_t>(id);
}

// Reads the ids of the tokens that a template of the post-processor puts before and behind every
// text.
Status ReadTemplateProcessing(const JsonFields& fields, VocabularyDraft* draft) {
  CRIA_ASSIGN_OR_RETURN(const json* const single, fields.Array("single"));
  const size_t size = single->size();
  if (size > 0 && IsSpecialToken(single->front())) {
    if (size > 1 && IsSpecialToken((*single)[1])) {
      return fields.Bad(ErrorCode::kUnsupported, "single",
                        "begins with two special tokens; at most one before the text is supported");
    }
    CRIA_ASSIGN_OR_RETURN(draft->rules.bos_token_id, ReadTemplateToken(fields, *single, 0));
    draft->rules.add_bos_token = true;
  }
  if (size > 1 && IsSpecialToken(single->back())) {
    if (IsSpecialToken((*single)[size - 2])) {
      return fields.Bad(ErrorCode::kUnsupported, "single",
                        "ends with two special tokens; at most one behind the text is supported");
    }
    CRIA_ASSIGN_OR_RETURN(draft->rules.appended_token_id,
                          ReadTemplateToken(fields, *single, size - 1));
  }
  return {};
}

Status ReadPostProcessor(const json& processor, const std::string& path, std::string_view where,
                         VocabularyDraft* draft) {
  const JsonFields fields(processor, where, path);
  CRIA_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "TemplateProcessing") return ReadTemplateProcessing(fields, draft);
  if (type == "ByteLevel") return {};  // It only changes the offsets of tokens in the text.
  if (type != "Sequence") {
    return fields.Bad(ErrorCode::kUnsupported, "type",
                      Format("is \"{}\", which is not a supported post-processor", Quotable(type)));
  }
  CRIA_ASSIGN_OR_RETURN(const json* const processors, fields.Array("processors"));
  for (size_t i = 0; i < processors->size(); ++i) {
    CRIA_RETURN_IF_ERROR(ReadPostProcessor(
        (*processors)[i], Format("{}[{}]", fields.PathOf("processors"), i), where, draft));
  }
  return {};
}

// Splitting text before every space changes nothing if no merge crosses such a place.
Status CheckSplitAtSpaces(const VocabularyDraft& draft, std::string_view where) {
  for (size_t id = 0; id < draft.pieces.size(); ++id) {
    const DraftPiece& piece = draft.pieces[id];
    if (piece.type == PieceType::kNormal && piece.bytes.find(' ', 1) != std::string::npos) {
      return Fail(ErrorCode::kUnsupported,
                  Format("{}: pre_tokenizer.split is true, but token {} has a space inside; "
                         "that is not supported",
                         where, id));
    }
  }
  return {};
}

// Whether a normalizer, or one of a sequence, is of this type.
bool HasNormalizer(const json* normalizer, std::string_view type) {
  if (normalizer == nullptr || !normalizer->is_object()) return false;
  const auto own_type = normalizer->find("type");
  if (own_type != normalizer->end() && *own_type == type) return true;
  const auto parts = normalizer->find("normalizers");
  return parts != normalizer->end() &&
         std::ranges::any_of(*parts, [&](const json& part) { return HasNormalizer(&part, type); });
}

Result<VocabularyDraft> Read(const json& tokenizer, std::string_view where) {
  const JsonFields fields(tokenizer, where);
  CRIA_ASSIGN_OR_RETURN(PreTokenization pre_tokenization, ReadPreTokenization(tokenizer, where));
  VocabularyDraft draft;
  draft.rules.family = pre_tokenization.family;
  draft.split_patterns = std::move(pre_tokenization.split_patterns);
  draft.rules.normalize_nfc = pre_tokenization.normalize_nfc;
  draft.rules.add_dummy_prefix = pre_tokenization.add_dummy_prefix;
  draft.rules.dummy_prefix_after_special = pre_tokenization.dummy_prefix_after_special;
  draft.rules.dummy_prefix_unless_space = pre_tokenization.dummy_prefix_unless_space;

  const json* model = fields.Find("model");
  if (model == nullptr) return fields.Bad(ErrorCode::kInvalidFile, "model", "is missing");
  CRIA_RETURN_IF_ERROR(ModelReader(*model, where, &draft).Read());
  if (pre_tokenization.splits_at_spaces) CRIA_RETURN_IF_ERROR(CheckSplitAtSpaces(draft, where));

  CRIA_ASSIGN_OR_RETURN(const std::vector<AddedToken> added, ReadAddedTokens(tokenizer, where));
  CRIA_RETURN_IF_ERROR(CheckNormalizedTokens(tokenizer, added, where));
  for (const AddedToken& token : added) CRIA_RETURN_IF_ERROR(draft.AddToken(token, where));
  if (const json* processor = fields.Find("post_processor")) {
    CRIA_RETURN_IF_ERROR(ReadPostProcessor(*processor, "post_processor", where, &draft));
  }
  return draft;
}

}  // namespace

Result<AddedToken> ReadAddedToken(const json& token, uint32_t id, std::string_view where,
                                  std::string_view path) {
  const JsonFields fields(token, where, path);
  AddedToken added{.id = id};
  CRIA_ASSIGN_OR_RETURN(added.content, fields.String("content"));
  if (added.content.empty()) return fields.Bad(ErrorCode::kInvalidFile, "content", "is missing");
  CRIA_ASSIGN_OR_RETURN(added.special, fields.Bool("special", false));
  CRIA_ASSIGN_OR_RETURN(added.normalized, fields.Bool("normalized", false));
  CRIA_ASSIGN_OR_RETURN(added.rstrip, fields.Bool("rstrip", false));
  for (const std::string_view flag : {"lstrip", "single_word"}) {
    CRIA_ASSIGN_OR_RETURN(const bool is_set, fields.Bool(flag, false));
    if (is_set) {
      return fields.Bad(ErrorCode::kUnsupported, flag,
                        Format("is true for the added token \"{}\", which is not supported",
                               Quotable(added.content)));
    }
  }
  return added;
}

Result<std::vector<AddedToken>> ReadAddedTokens(const json& tokenizer, std::string_view where) {
  const JsonFields fields(tokenizer, where);
  std::vector<AddedToken> added;
  if (fields.Find("added_tokens") == nullptr) return added;
  CRIA_ASSIGN_OR_RETURN(const json* const tokens, fields.Array("added_tokens"));
  for (size_t i = 0; i < tokens->size(); ++i) {
    const json& token = (*tokens)[i];
    const std::string path = Format("added_tokens[{}]", i);
    const json* id_field = JsonFields(token, where, path).Find("id");
    CRIA_ASSIGN_OR_RETURN(const uint32_t id, ReadId(id_field, where, path + ".id"));
    CRIA_ASSIGN_OR_RETURN(AddedToken read, ReadAddedToken(token, id, where, path));
    added.push_back(std::move(read));
  }
  return added;
}

Status CheckNormalizedTokens(const json& tokenizer, std::span<const AddedToken> tokens,
                             std::string_view where) {
  const json* const normalizer = JsonFields(tokenizer, where).Find("normalizer");
  const bool composes = HasNormalizer(normalizer, "NFC");
  const bool prepends = HasNormalizer(normalizer, "Prepend");
  const auto is_ascii = [](char c) { return static_cast<uint8_t>(c) < 0x80; };
  for (const AddedToken& token : tokens) {
    if (!token.normalized) continue;
    if (composes && !std::ranges::all_of(token.content, is_ascii)) {
      return Fail(
          ErrorCode::kUnsupported,
          Format("{}: the added token \"{}\" must be searched for in normalized text, "
                 "which is supported only for ASCII tokens; set its \"normalized\" to false",
                 where, Quotable(token.content)));
    }
    if (prepends && !token.special) {
      return Fail(
          ErrorCode::kUnsupported,
          Format("{}: the added token \"{}\" is \"normalized\", so that the normalizer "
                 "Prepend puts a space before it and it is found only after a space; that is "
                 "not supported. Set its \"normalized\" to false",
                 where, Quotable(token.content)));
    }
  }
  return {};
}

Result<VocabularyDraft> ReadTokenizerJson(const json& tokenizer, std::string_view where) {
  try {
    return Read(tokenizer, where);
  } catch (const json::exception& exception) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: {}", where, Quotable(exception.what())));
  }
}

}  // namespace cria
