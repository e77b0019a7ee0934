#include "converter/tokenizer/tokenizer_settings.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converter/input/json_fields.h"
#include "converter/input/json_file.h"
#include "converter/input/whole_file.h"
#include "converter/tokenizer/tokenizer_file.h"
#include "converter/tokenizer/tokenizer_json.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

Status ReadBoolIfSet(const JsonFields& fields, std::string_view name, std::optional<bool>* value) {
  if (fields.Find(name) == nullptr) return {};
  CRIA_ASSIGN_OR_RETURN(*value, fields.Bool(name, false));
  return {};
}

// A token is a string, or an object with the string in "content".
Status ReadTokenIfSet(const JsonFields& fields, std::string_view name, std::string* token) {
  const json* value = fields.Find(name);
  if (value == nullptr || !token->empty()) return {};
  if (value->is_object()) {
    CRIA_ASSIGN_OR_RETURN(*token, fields.Object(name).String("content"));
  } else {
    CRIA_ASSIGN_OR_RETURN(*token, fields.String(name));
  }
  return {};
}

// Adds the tokens of a list.
Status ReadTokens(const JsonFields& fields, std::string_view name,
                  std::vector<std::string>* tokens) {
  const json* value = fields.Find(name);
  // Some files have an object here, whose tokens have names.
  if (value == nullptr || !value->is_array()) return {};
  for (size_t i = 0; i < value->size(); ++i) {
    const json& token = (*value)[i];
    const std::string path = Format("{}[{}]", name, i);
    const json* const content =
        token.is_object() ? JsonFields(token, fields.where(), path).Find("content") : &token;
    if (content == nullptr || !content->is_string()) {
      return fields.Bad(ErrorCode::kInvalidFile, path, "must be a token");
    }
    tokens->push_back(content->get<std::string>());
  }
  return {};
}

Status ReadSpecialTokens(const JsonFields& fields, TokenizerSettings* settings) {
  CRIA_RETURN_IF_ERROR(ReadTokens(fields, "additional_special_tokens", &settings->special_tokens));
  return ReadTokens(fields, "extra_special_tokens", &settings->special_tokens);
}

// Reads a string, or a list of named templates, of which "default" is used.
Status ReadChatTemplate(const JsonFields& fields, TokenizerSettings* settings) {
  const json* value = fields.Find("chat_template");
  ChatTemplateSource& source = settings->chat_template;
  if (value == nullptr || !source.text.empty()) return {};
  source.where = fields.where();
  source.note.clear();
  if (value->is_string()) {
    source.text = value->get<std::string>();
    return {};
  }
  if (!value->is_array()) {
    return fields.Bad(ErrorCode::kInvalidFile, "chat_template",
                      "must be a string or a list of templates");
  }
  std::string unused;
  for (size_t i = 0; i < value->size(); ++i) {
    const JsonFields named((*value)[i], fields.where(), Format("chat_template[{}]", i));
    CRIA_ASSIGN_OR_RETURN(const std::string name, named.String("name"));
    if (name != "default") {
      unused += Format("{}\"{}\"", unused.empty() ? "" : ", ", Quotable(name));
      continue;
    }
    CRIA_ASSIGN_OR_RETURN(source.text, named.String("template"));
  }
  if (source.text.empty()) {
    source.note = Format(
        "{}: chat_template has {}, and none that is called \"default\": the model gets no chat "
        "template",
        source.where, unused.empty() ? "no templates" : unused);
  } else if (!unused.empty()) {
    source.note = Format("{}: of chat_template, the model gets \"default\", and not {}",
                         source.where, unused);
  }
  return {};
}

Status ReadAddedTokensDecoder(const JsonFields& fields, TokenizerSettings* settings) {
  const json* tokens = fields.Find("added_tokens_decoder");
  if (tokens == nullptr) return {};
  if (!tokens->is_object()) {
    return fields.Bad(ErrorCode::kInvalidFile, "added_tokens_decoder", "must be an object");
  }
  for (const auto& [key, token] : tokens->items()) {
    uint32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size()) {
      return fields.Bad(ErrorCode::kInvalidFile, "added_tokens_decoder",
                        Format("has the key \"{}\" instead of an id", Quotable(key)));
    }
    CRIA_ASSIGN_OR_RETURN(AddedToken read,
                          ReadAddedToken(token, id, fields.where(),
                                         Format("added_tokens_decoder[\"{}\"]", Quotable(key))));
    settings->added_tokens.push_back(std::move(read));
  }
  return {};
}

Status ReadTokenizerConfig(const JsonFields& fields, TokenizerSettings* settings) {
  CRIA_RETURN_IF_ERROR(ReadBoolIfSet(fields, "add_bos_token", &settings->add_bos_token));
  CRIA_RETURN_IF_ERROR(ReadBoolIfSet(fields, "add_prefix_space", &settings->add_prefix_space));
  CRIA_RETURN_IF_ERROR(ReadBoolIfSet(fields, "legacy", &settings->legacy));
  CRIA_RETURN_IF_ERROR(ReadTokenIfSet(fields, "bos_token", &settings->bos_token));
  CRIA_RETURN_IF_ERROR(ReadTokenIfSet(fields, "eos_token", &settings->eos_token));
  CRIA_RETURN_IF_ERROR(ReadSpecialTokens(fields, settings));
  CRIA_RETURN_IF_ERROR(ReadChatTemplate(fields, settings));
  return ReadAddedTokensDecoder(fields, settings);
}

Status ReadSpecialTokensMap(const JsonFields& fields, TokenizerSettings* settings) {
  CRIA_RETURN_IF_ERROR(ReadTokenIfSet(fields, "bos_token", &settings->bos_token));
  CRIA_RETURN_IF_ERROR(ReadSpecialTokens(fields, settings));
  return ReadTokenIfSet(fields, "eos_token", &settings->eos_token);
}

// Collects tokens with different ids: of several with one id, the first is kept.
class TokenCollector {
 public:
  explicit TokenCollector(std::vector<AddedToken>* tokens) : tokens_(*tokens) {
    for (const AddedToken& token : tokens_) ids_.insert(token.id);
  }
  void Add(AddedToken token) {
    if (ids_.insert(token.id).second) tokens_.push_back(std::move(token));
  }

 private:
  std::vector<AddedToken>& tokens_;
  std::unordered_set<uint32_t> ids_;
};

// The map has only texts and ids, not whether a token is special. If another file describes a
// token, that is used; otherwise the token counts as special, so that users' text can never become
// it.
Status ReadAddedTokensMap(const json& tokens, std::string_view where, TokenizerSettings* settings) {
  TokenCollector collector(&settings->added_tokens);
  for (const auto& [content, id] : tokens.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= kMaxDraftPieces) {
      return Fail(ErrorCode::kInvalidFile, Format("{}: \"{}\" must be a whole number below {}",
                                                  where, Quotable(content), kMaxDraftPieces));
    }
    collector.Add({id.get<uint32_t>(), content, true});
  }
  return {};
}

// eos_token_id is a number or a list of numbers.
Status ReadTokenIds(const JsonFields& fields, TokenizerSettings* settings) {
  const auto read_id = [&](const json& value, std::string_view name) -> Result<uint32_t> {
    if (!value.is_number_unsigned() || value.get<uint64_t>() >= kMaxDraftPieces) {
      return fields.Bad(ErrorCode::kInvalidFile, name, "must be a token id");
    }
    return value.get<uint32_t>();
  };
  // Some files have -1 for a token that does not exist.
  const auto is_none = [](const json* value) { return value == nullptr || *value == -1; };
  if (const json* bos = fields.Find("bos_token_id"); !is_none(bos) && !settings->bos_token_id) {
    CRIA_ASSIGN_OR_RETURN(settings->bos_token_id, read_id(*bos, "bos_token_id"));
  }
  const json* eos = fields.Find("eos_token_id");
  if (is_none(eos)) return {};
  const json ids = eos->is_array() ? *eos : json::array({*eos});
  for (const json& value : ids) {
    CRIA_ASSIGN_OR_RETURN(const uint32_t id, read_id(value, "eos_token_id"));
    settings->eos_token_ids.push_back(id);
  }
  return {};
}

// Calls `read` with the fields of a JSON file if the file exists.
template <typename Read>
Status ReadIfExists(const std::filesystem::path& path, Read read) {
  CRIA_ASSIGN_OR_RETURN(const bool exists, FileExists(path));
  if (!exists) return {};
  CRIA_ASSIGN_OR_RETURN(const json parsed, ReadJsonFile(path, kMaxTokenizerFileBytes));
  return read(JsonFields(parsed, path.string()), parsed);
}

// Checkpoints have templates besides the default one in files of this folder. None of them is used.
void NoteAdditionalTemplates(const std::filesystem::path& folder, ChatTemplateSource* source) {
  const auto path = folder / "additional_chat_templates";
  std::vector<std::string> names;
  // A folder that is absent or cannot be read has no files.
  std::error_code error;
  for (std::filesystem::directory_iterator file(path, error), end; file != end;
       file.increment(error)) {
    const std::filesystem::path& name = file->path();
    if (name.extension() == ".jinja") names.emplace_back(Quotable(name.stem().string()));
  }
  if (names.empty() || !source->note.empty()) return;
  std::ranges::sort(names);
  std::string listed;
  for (const std::string& name : names) listed += Format(", \"{}\"", name);
  source->note = source->text.empty()
                     ? Format(
                           "{} has {}, and the checkpoint has no default template: the model "
                           "gets no chat template",
                           path.string(), listed.substr(2))
                     : Format(
                           "of the chat templates, the model gets the default one, and not {} "
                           "of {}",
                           listed.substr(2), path.string());
}

Result<TokenizerSettings> ReadAll(const std::filesystem::path& folder, const json& tokenizer_json) {
  TokenizerSettings settings;
  // Newer checkpoints have the template in a file of its own, which has precedence.
  const auto path = folder / "chat_template.jinja";
  CRIA_ASSIGN_OR_RETURN(const bool has_template_file, FileExists(path));
  if (has_template_file) {
    CRIA_ASSIGN_OR_RETURN(settings.chat_template.text, ReadTemplateFile(path));
    settings.chat_template.where = path.string();
  }
  CRIA_RETURN_IF_ERROR(
      ReadIfExists(folder / "tokenizer_config.json", [&](const JsonFields& fields, const json&) {
        return ReadTokenizerConfig(fields, &settings);
      }));
  CRIA_RETURN_IF_ERROR(ReadIfExists(
      folder / "chat_template.json",
      [&](const JsonFields& fields, const json&) { return ReadChatTemplate(fields, &settings); }));
  NoteAdditionalTemplates(folder, &settings.chat_template);
  CRIA_RETURN_IF_ERROR(
      ReadIfExists(folder / "special_tokens_map.json", [&](const JsonFields& fields, const json&) {
        return ReadSpecialTokensMap(fields, &settings);
      }));
  CRIA_ASSIGN_OR_RETURN(std::vector<AddedToken> added,
                        ReadAddedTokens(tokenizer_json, (folder / "tokenizer.json").string()));
  TokenCollector collector(&settings.added_tokens);
  for (AddedToken& token : added) collector.Add(std::move(token));
  CRIA_RETURN_IF_ERROR(
      ReadIfExists(folder / "added_tokens.json", [&](const JsonFields& fields, const json& parsed) {
        return ReadAddedTokensMap(parsed, fields.where(), &settings);
      }));
  for (const char* name : {"generation_config.json", "config.json"}) {
    CRIA_RETURN_IF_ERROR(ReadIfExists(folder / name, [&](const JsonFields& fields, const json&) {
      return ReadTokenIds(fields, &settings);
    }));
  }
  return settings;
}

}  // namespace

Result<TokenizerSettings> ReadTokenizerSettings(const std::filesystem::path& folder,
                                                const json& tokenizer_json) {
  try {
    return ReadAll(folder, tokenizer_json);
  } catch (const json::exception& exception) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: a JSON file of the tokenizer is malformed: {}",
                                                folder.string(), Quotable(exception.what())));
  }
}

}  // namespace cria
