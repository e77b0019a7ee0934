#include "converter/tokenizer/tokenizer_import.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <unordered_set>
#include <utility>

#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "converter/input/whole_file.h"
#include "converter/tokenizer/chat_template_import.h"
#include "converter/tokenizer/pre_tokenizer_json.h"
#include "converter/tokenizer/sentencepiece_model.h"
#include "converter/tokenizer/tiktoken_ranks.h"
#include "converter/tokenizer/tokenizer_file.h"
#include "converter/tokenizer/tokenizer_json.h"
#include "converter/tokenizer/tokenizer_settings.h"
#include "core/format.h"
#include "core/quotable.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

using nlohmann::json;

// Tokens that always end a turn or a text.
constexpr std::array<std::string_view, 8> kEndTokens = {
    "<|eot_id|>",    "<|eom_id|>", "<|end_of_text|>", "<|im_end|>",
    "<|endoftext|>", "<|end|>",    "<|end_of_turn|>", "<end_of_turn>"};

// The files from which a vocabulary can be read.
struct TokenizerFiles {
  std::string model_path;
  std::string model;  // tokenizer.model; empty if there is none.
  std::string json_path;
  json tokenizer_json;  // Null if there is none.
};

Result<TokenizerFiles> ReadFiles(const std::filesystem::path& folder) {
  const auto model_path = folder / "tokenizer.model";
  const auto json_path = folder / "tokenizer.json";
  TokenizerFiles files{.model_path = model_path.string(), .json_path = json_path.string()};
  CRIA_ASSIGN_OR_RETURN(const bool has_model, FileExists(model_path));
  CRIA_ASSIGN_OR_RETURN(const bool has_json, FileExists(json_path));
  if (!has_model && !has_json) {
    return Fail(ErrorCode::kNotFound,
                Format("{}: has no tokenizer: neither tokenizer.model nor tokenizer.json is "
                       "there. Copy it from where the checkpoint came from",
                       folder.string()));
  }
  if (has_model) {
    CRIA_ASSIGN_OR_RETURN(files.model, ReadTokenizerFile(model_path));
  }
  if (has_json) {
    CRIA_ASSIGN_OR_RETURN(files.tokenizer_json, ReadJsonFile(json_path, kMaxTokenizerFileBytes));
  }
  return files;
}

// If a folder has both tokenizer.json and tokenizer.model, transformers reads tokenizer.json. The
// two differ only in the space before a text, and only if the pre-tokenizer Metaspace adds it.
Status ApplyMetaspace(const TokenizerFiles& files, TokenizerRules& rules) {
  const JsonFields fields(files.tokenizer_json, files.json_path);
  const json* type = fields.Object("pre_tokenizer").Find("type");
  if (!rules.add_dummy_prefix || type == nullptr || *type != "Metaspace" ||
      fields.Find("normalizer") != nullptr) {
    return {};
  }
  CRIA_ASSIGN_OR_RETURN(const PreTokenization found,
                        ReadPreTokenization(files.tokenizer_json, files.json_path));
  rules.add_dummy_prefix = found.add_dummy_prefix;
  rules.dummy_prefix_after_special = found.dummy_prefix_after_special;
  rules.dummy_prefix_unless_space = found.dummy_prefix_unless_space;
  return {};
}

Result<VocabularyDraft> ReadDraft(const TokenizerFiles& files, const TokenizerSettings& settings) {
  if (IsSentencePieceModel(files.model)) {
    CRIA_ASSIGN_OR_RETURN(VocabularyDraft draft,
                          ReadSentencePieceModel(files.model, files.model_path));
    TokenizerRules& rules = draft.rules;
    if (settings.add_prefix_space == false) rules.add_dummy_prefix = false;
    rules.dummy_prefix_after_special = rules.add_dummy_prefix && settings.legacy.value_or(true);
    CRIA_RETURN_IF_ERROR(ApplyMetaspace(files, rules));
    return draft;
  }
  if (!files.tokenizer_json.is_null()) {
    return ReadTokenizerJson(files.tokenizer_json, files.json_path);
  }
  return ReadTiktokenRanks(files.model, settings.added_tokens, files.model_path);
}

// The id of a special token with this text; fails if there is none.
Result<int32_t> IdOf(const VocabularyDraft& draft, std::string_view token, std::string_view field) {
  const int32_t id = draft.FindSpecial(token);
  if (id >= 0) return id;
  return Fail(ErrorCode::kInvalidFile,
              Format("tokenizer_config.json: {} is \"{}\", which the tokenizer does not have "
                     "as a special token",
                     field, Quotable(token)));
}

Status ApplyBos(const TokenizerSettings& settings, size_t vocab_size, VocabularyDraft* draft) {
  TokenizerRules& rules = draft->rules;
  if (!settings.bos_token.empty()) {
    CRIA_ASSIGN_OR_RETURN(rules.bos_token_id, IdOf(*draft, settings.bos_token, "bos_token"));
  } else if (rules.bos_token_id < 0 && settings.bos_token_id) {
    rules.bos_token_id = static_cast<int32_t>(*settings.bos_token_id);
  }
  rules.add_bos_token = settings.add_bos_token.value_or(rules.add_bos_token);
  if (rules.add_bos_token && rules.bos_token_id < 0) {
    return Fail(ErrorCode::kInvalidFile,
                "tokenizer_config.json: add_bos_token is true, but there is no bos_token");
  }
  if (rules.bos_token_id >= 0 && static_cast<size_t>(rules.bos_token_id) >= vocab_size) {
    return Fail(ErrorCode::kInvalidFile,
                Format("config.json or the tokenizer: bos_token_id is {}, but the vocabulary "
                       "ends at {}",
                       rules.bos_token_id, vocab_size));
  }
  return {};
}

// Sets the token that templates write as eos_token.
Status ApplyEos(const TokenizerSettings& settings, size_t vocab_size, VocabularyDraft* draft) {
  int32_t& eos = draft->rules.eos_token_id;
  eos = draft->eos_token_id;
  if (!settings.eos_token.empty()) {
    CRIA_ASSIGN_OR_RETURN(eos, IdOf(*draft, settings.eos_token, "eos_token"));
  } else if (eos < 0 && !settings.eos_token_ids.empty()) {
    eos = static_cast<int32_t>(settings.eos_token_ids.front());
  }
  const size_t num_pieces = std::min(vocab_size, draft->pieces.size());
  if (eos >= 0 && static_cast<size_t>(eos) >= num_pieces) eos = -1;
  return {};
}

// Makes pieces of text with these texts control tokens.
void MakeSpecial(std::span<const std::string> tokens, VocabularyDraft* draft) {
  if (tokens.empty()) return;
  const std::unordered_set<std::string_view> texts(tokens.begin(), tokens.end());
  for (DraftPiece& piece : draft->pieces) {
    if (piece.type == PieceType::kNormal && texts.contains(piece.bytes)) {
      piece.type = PieceType::kControl;
    }
  }
}

// What a user is told about tokens that a file has as ordinary text.
std::string NoteOfMarks(const std::vector<std::string>& marks) {
  std::string names;
  for (const std::string& mark : marks) {
    names += Format("{}{}", names.empty() ? "" : ", ", Quotable(mark));
  }
  return Format("the file has marks of turns as ordinary text; they become special tokens: {}",
                names);
}

// `ids`, which end an answer by the chat template, and the other ids that end one.
Result<std::vector<int32_t>> StopTokenIds(const TokenizerSettings& settings,
                                          std::vector<int32_t> ids, const VocabularyDraft& draft,
                                          size_t vocab_size) {
  for (const uint32_t id : settings.eos_token_ids) {
    if (id >= vocab_size) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("generation_config.json or config.json: eos_token_id is {}, but the "
                         "vocabulary ends at {}",
                         id, vocab_size));
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  ids.push_back(draft.rules.eos_token_id);
  ids.push_back(draft.eos_token_id);
  for (const std::string_view token : kEndTokens) ids.push_back(draft.FindSpecial(token));
  // A vocabulary with <|return|> and <|call|> is gpt-oss's. An answer in its Harmony format is
  // several messages; all but the last end with <|end|>, so that this does not end the answer.
  const int32_t end_of_answer = draft.FindSpecial("<|return|>");
  const int32_t call = draft.FindSpecial("<|call|>");
  if (end_of_answer >= 0 && call >= 0) {
    ids.insert(ids.end(), {end_of_answer, call});
    std::erase(ids, draft.FindSpecial("<|end|>"));
  }
  std::erase(ids, -1);
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

}  // namespace

Result<TokenizerMaterial> ReadTokenizer(const std::filesystem::path& checkpoint_dir) {
  CRIA_ASSIGN_OR_RETURN(const TokenizerFiles files, ReadFiles(checkpoint_dir));
  TokenizerMaterial material = {.where = checkpoint_dir.string()};
  CRIA_ASSIGN_OR_RETURN(material.settings,
                        ReadTokenizerSettings(checkpoint_dir, files.tokenizer_json));
  if (!files.tokenizer_json.is_null()) {
    CRIA_RETURN_IF_ERROR(CheckNormalizedTokens(files.tokenizer_json, material.settings.added_tokens,
                                               checkpoint_dir.string()));
  }
  CRIA_ASSIGN_OR_RETURN(material.draft, ReadDraft(files, material.settings));
  return material;
}

Result<ImportedTokenizer> ImportTokenizer(TokenizerMaterial material,
                                          std::optional<size_t> known_vocab_size,
                                          const std::optional<ChatTemplateSource>& chat_template) {
  VocabularyDraft& draft = material.draft;
  const TokenizerSettings& settings = material.settings;
  for (const AddedToken& token : settings.added_tokens) {
    CRIA_RETURN_IF_ERROR(draft.AddToken(token, material.where));
  }
  MakeSpecial(settings.special_tokens, &draft);
  const size_t vocab_size = known_vocab_size.value_or(draft.pieces.size());
  CRIA_RETURN_IF_ERROR(ApplyBos(settings, vocab_size, &draft));
  CRIA_RETURN_IF_ERROR(ApplyEos(settings, vocab_size, &draft));

  ImportedTokenizer imported;
  const ChatTemplateSource& source = chat_template ? *chat_template : settings.chat_template;
  if (draft.marks_may_be_text) {
    CRIA_ASSIGN_OR_RETURN(const std::vector<std::string> marks,
                          MakeMarksSpecial(source.text, kEndTokens, &draft));
    if (!marks.empty()) imported.notes.push_back(NoteOfMarks(marks));
  }
  if (!source.note.empty()) imported.notes.push_back(source.note);
  auto end_ids = ImportChatTemplate(source.text, &draft, &imported.notes);
  if (!end_ids) {
    return Fail(end_ids.error().code(), Format("{}: {}", source.where, end_ids.error().message()),
                end_ids.error().remedy());
  }
  imported.chat_template_source = source.text;
  CRIA_ASSIGN_OR_RETURN(imported.stop_token_ids,
                        StopTokenIds(settings, *std::move(end_ids), draft, vocab_size));
  CRIA_ASSIGN_OR_RETURN(imported.vocabulary, BuildVocabulary(draft, vocab_size));
  CRIA_RETURN_IF_ERROR(Tokenizer::Create(imported.vocabulary.view()));
  return imported;
}

}  // namespace cria
