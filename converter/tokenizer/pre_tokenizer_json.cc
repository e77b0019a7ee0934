#include "converter/tokenizer/pre_tokenizer_json.h"

#include <nlohmann/json.hpp>

#include "converter/input/json_fields.h"
#include "converter/tokenizer/piece_text.h"
#include "converter/tokenizer/split_patterns_by_name.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

class Reader {
 public:
  explicit Reader(std::string_view where) : where_(where) {}

  Status ReadNormalizer(const json& normalizer, const std::string& path);
  Status ReadPreTokenizer(const json& pre_tokenizer, const std::string& path);
  Result<PreTokenization> Finish();

 private:
  // Calls `read` for each element of the array `name`.
  template <typename Read>
  Status ReadSequence(const JsonFields& fields, std::string_view name, Read read) {
    CRIA_ASSIGN_OR_RETURN(const json* const parts, fields.Array(name));
    for (size_t i = 0; i < parts->size(); ++i) {
      CRIA_RETURN_IF_ERROR(read((*parts)[i], Format("{}[{}]", fields.PathOf(name), i)));
    }
    return {};
  }
  Status ReadPrepend(const JsonFields& fields);
  Status ReadReplace(const JsonFields& fields);
  Status ReadSplit(const JsonFields& fields);
  Status ReadDigits(const JsonFields& fields);
  Status ReadByteLevel(const JsonFields& fields);
  Status ReadMetaspace(const JsonFields& fields);

  std::string where_;
  PreTokenization found_;
  bool makes_spaces_visible_ = false;
  bool is_byte_level_ = false;
  bool prepends_always_ = false;
};

Status Reader::ReadNormalizer(const json& normalizer, const std::string& path) {
  if (normalizer.is_null()) return {};
  const JsonFields fields(normalizer, where_, path);
  CRIA_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "Sequence") {
    return ReadSequence(fields, "normalizers", [this](const json& part, const std::string& name) {
      return ReadNormalizer(part, name);
    });
  }
  if (type == "NFC") {
    // Neither a space nor U+2581 composes with anything, so NFC may be applied before the others.
    found_.normalize_nfc = true;
    return {};
  }
  if (type == "Prepend") return ReadPrepend(fields);
  if (type == "Replace") return ReadReplace(fields);
  return fields.Bad(ErrorCode::kUnsupported, "type",
                    Format("is \"{}\", which is not a supported normalizer", Quotable(type)));
}

Status Reader::ReadPrepend(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const std::string prefix, fields.String("prepend"));
  if (prefix != kVisibleSpace && prefix != " ") {
    return fields.Bad(
        ErrorCode::kUnsupported, "prepend",
        Format("is \"{}\"; only \"{}\" is supported", Quotable(prefix), kVisibleSpace));
  }
  // Normalizers are applied to each text between special tokens separately.
  found_.add_dummy_prefix = found_.dummy_prefix_after_special = true;
  prepends_always_ = true;
  return {};
}

Status Reader::ReadReplace(const JsonFields& fields) {
  const json* literal = fields.Object("pattern").Find("String");
  CRIA_ASSIGN_OR_RETURN(const std::string content, fields.String("content"));
  if (literal == nullptr || *literal != " " || content != kVisibleSpace) {
    return fields.Bad(ErrorCode::kUnsupported, "pattern",
                      Format("and content must replace \" \" by \"{}\"; no other replacement "
                             "is supported",
                             kVisibleSpace));
  }
  makes_spaces_visible_ = true;
  return {};
}

Status Reader::ReadPreTokenizer(const json& pre_tokenizer, const std::string& path) {
  if (pre_tokenizer.is_null()) return {};
  const JsonFields fields(pre_tokenizer, where_, path);
  CRIA_ASSIGN_OR_RETURN(const std::string type, fields.String("type"));
  if (type == "Sequence") {
    return ReadSequence(fields, "pretokenizers", [this](const json& part, const std::string& name) {
      return ReadPreTokenizer(part, name);
    });
  }
  if (is_byte_level_) {
    return fields.Bad(ErrorCode::kUnsupported, "type",
                      Format("is \"{}\" after ByteLevel, which must be the last", Quotable(type)));
  }
  if (type == "Split") return ReadSplit(fields);
  if (type == "Digits") return ReadDigits(fields);
  if (type == "ByteLevel") return ReadByteLevel(fields);
  if (type == "Metaspace") return ReadMetaspace(fields);
  return fields.Bad(ErrorCode::kUnsupported, "type",
                    Format("is \"{}\", which is not a supported pre-tokenizer", Quotable(type)));
}

Status Reader::ReadSplit(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const std::string behavior, fields.String("behavior"));
  CRIA_ASSIGN_OR_RETURN(const bool invert, fields.Bool("invert", false));
  const JsonFields pattern = fields.Object("pattern");
  // Gemma's splits text at spaces when the normalizer has already replaced all of them.
  const json* at = pattern.Find("String");
  if (makes_spaces_visible_ && at != nullptr && *at == " " && !invert) return {};
  // "Removed" with "invert" keeps the matches and drops the gaps. The known patterns with it match
  // all text; if one did not, the gaps would be kept here and not lost.
  if (behavior != "Isolated" && !(behavior == "Removed" && invert)) {
    return fields.Bad(ErrorCode::kUnsupported, "behavior",
                      Format("is \"{}\"; only \"Isolated\" is supported", Quotable(behavior)));
  }
  CRIA_ASSIGN_OR_RETURN(const std::string regex, pattern.String("Regex"));
  CRIA_ASSIGN_OR_RETURN(const std::string literal, pattern.String("String"));
  if (regex.empty() == literal.empty()) {
    return fields.Bad(ErrorCode::kInvalidFile, "pattern", "must have either Regex or String");
  }
  if (regex.contains("&&")) {
    return fields.Bad(ErrorCode::kUnsupported, "pattern.Regex",
                      "has an intersection of character classes, which is not supported");
  }
  if (literal.contains("\\E")) {
    return fields.Bad(ErrorCode::kUnsupported, "pattern.String", "must not contain \\E");
  }
  found_.split_patterns.push_back(regex.empty() ? Format("\\Q{}\\E", literal) : regex);
  return {};
}

Status Reader::ReadDigits(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const bool individual_digits, fields.Bool("individual_digits", false));
  found_.split_patterns.emplace_back(individual_digits ? R"(\p{N})" : R"(\p{N}+)");
  return {};
}

Status Reader::ReadByteLevel(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const bool add_prefix_space, fields.Bool("add_prefix_space", false));
  if (add_prefix_space) {
    return fields.Bad(ErrorCode::kUnsupported, "add_prefix_space",
                      "is true, which is not supported");
  }
  CRIA_ASSIGN_OR_RETURN(const bool use_regex, fields.Bool("use_regex", true));
  if (use_regex) found_.split_patterns.emplace_back(kGpt2Pattern);
  is_byte_level_ = true;
  return {};
}

Status Reader::ReadMetaspace(const JsonFields& fields) {
  CRIA_ASSIGN_OR_RETURN(const std::string replacement, fields.String("replacement", kVisibleSpace));
  if (replacement != kVisibleSpace) {
    return fields.Bad(
        ErrorCode::kUnsupported, "replacement",
        Format("is \"{}\"; only \"{}\" is supported", Quotable(replacement), kVisibleSpace));
  }
  // Before "prepend_scheme" there was "add_prefix_space".
  CRIA_ASSIGN_OR_RETURN(const bool add_prefix_space, fields.Bool("add_prefix_space", true));
  CRIA_ASSIGN_OR_RETURN(const std::string scheme,
                        fields.String("prepend_scheme", add_prefix_space ? "always" : "never"));
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return fields.Bad(ErrorCode::kInvalidFile, "prepend_scheme",
                      Format("is \"{}\" instead of always, first or never", Quotable(scheme)));
  }
  if (scheme != "never") found_.add_dummy_prefix = true;
  found_.dummy_prefix_unless_space = scheme != "never" && !prepends_always_;
  if (scheme == "always") found_.dummy_prefix_after_special = true;
  CRIA_ASSIGN_OR_RETURN(found_.splits_at_spaces, fields.Bool("split", true));
  makes_spaces_visible_ = true;
  return {};
}

Result<PreTokenization> Reader::Finish() {
  if (is_byte_level_ && (makes_spaces_visible_ || found_.add_dummy_prefix)) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: pre_tokenizer is ByteLevel, but normalizer or pre_tokenizer also "
                       "changes spaces; that is not supported",
                       where_));
  }
  if (is_byte_level_) {
    found_.family = TokenizerFamily::kByteLevelBpe;
    return found_;
  }
  if (!makes_spaces_visible_) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: neither has the pre_tokenizer ByteLevel nor are spaces replaced by "
                       "\"{}\"; only these two kinds of Llama tokenizers are supported",
                       where_, kVisibleSpace));
  }
  if (!found_.split_patterns.empty()) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: pre_tokenizer has Split or Digits without ByteLevel, which is not "
                       "supported",
                       where_));
  }
  return found_;
}

}  // namespace

Result<PreTokenization> ReadPreTokenization(const json& tokenizer, std::string_view where) {
  Reader reader(where);
  const JsonFields fields(tokenizer, where);
  const json* normalizer = fields.Find("normalizer");
  const json* pre_tokenizer = fields.Find("pre_tokenizer");
  if (normalizer != nullptr) {
    CRIA_RETURN_IF_ERROR(reader.ReadNormalizer(*normalizer, "normalizer"));
  }
  if (pre_tokenizer != nullptr) {
    CRIA_RETURN_IF_ERROR(reader.ReadPreTokenizer(*pre_tokenizer, "pre_tokenizer"));
  }
  return reader.Finish();
}

}  // namespace cria
