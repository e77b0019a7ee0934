#include "server/requests/answer_format.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "messages/json_text.h"
#include "server/requests/json_body.h"
#include "server/requests/json_bounds.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

using ShapeKind = AnswerShape::Kind;

// An expression that matches this text alone.
std::string Literal(std::string_view text) {
  constexpr std::string_view kSyntax = R"(^$\.*+?()[]{}|)";
  std::string pattern;
  for (const char c : text) {
    if (kSyntax.contains(c)) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

AnswerShape ShapeOfChoices(const Json& choices, std::string field) {
  if (!choices.is_array() || choices.empty()) RefuseField(field, "is not a list of texts");
  std::string pattern;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!choices[i].is_string()) RefuseField(field, "has an item that is not a string");
    if (i > 0) pattern += '|';
    pattern += Literal(choices[i].get_ref<const std::string&>());
  }
  return {ShapeKind::kRegex, std::move(pattern), std::move(field)};
}

// `named` has the schema of the type json_schema.
AnswerShape ShapeOfFormat(const Fields& format, const std::optional<Fields>& named) {
  const std::string type = format.RequiredString("type");
  if (type == "text") return {};
  if (type == "json_object") {
    // llama-server's variant.
    if (const Json* const schema = format.Find("schema")) {
      return ShapeOfSchema(*schema, format.PathOf("schema"));
    }
    return {ShapeKind::kJsonObject, "", format.path()};
  }
  if (type != "json_schema") {
    RefuseField(format.PathOf("type"), R"(is not "text", "json_object" or "json_schema")");
  }
  if (!named) RefuseField(format.PathOf("json_schema"), "is missing");
  const Json* const schema = named->Find("schema");
  if (schema == nullptr) RefuseField(named->PathOf("schema"), "is missing");
  return ShapeOfSchema(*schema, named->PathOf("schema"));
}

// Takes the one form that a request may have.
class AnswerFormat {
 public:
  void Add(AnswerShape shape) {
    if (shape.kind == ShapeKind::kAny) return;
    if (shape_.kind != ShapeKind::kAny) {
      RefuseField(shape.field, "cannot be combined with another form of the answer");
    }
    shape_ = std::move(shape);
  }
  void AddText(ShapeKind kind, const Fields& fields, const std::string& name) {
    const std::optional<std::string> text = fields.String(name);
    if (text && !text->empty()) Add({kind, *text, fields.PathOf(name)});
  }
  // vLLM's, whose names begin with `prefix`.
  void AddGuides(const Fields& fields, const std::string& prefix) {
    if (const Json* const schema = fields.Find(prefix + "json")) {
      Add(ShapeOfSchema(*schema, fields.PathOf(prefix + "json")));
    }
    AddText(ShapeKind::kRegex, fields, prefix + "regex");
    if (const Json* const choices = fields.Find(prefix + "choice")) {
      Add(ShapeOfChoices(*choices, fields.PathOf(prefix + "choice")));
    }
    AddText(ShapeKind::kGrammar, fields, prefix + "grammar");
    if (fields.Bool(prefix + "json_object").value_or(false)) {
      Add({ShapeKind::kJsonObject, "", fields.PathOf(prefix + "json_object")});
    }
  }
  AnswerShape Take() { return std::move(shape_); }

 private:
  AnswerShape shape_;
};

// What llama-server and vLLM add to all of OpenAI's requests.
AnswerShape TakeWithAdditions(AnswerFormat format, const Fields& request) {
  if (const Json* const schema = request.Find("json_schema")) {
    format.Add(ShapeOfSchema(*schema, request.PathOf("json_schema")));
  }
  format.AddText(ShapeKind::kGrammar, request, "grammar");
  format.AddGuides(request, "guided_");
  if (const auto outputs = request.Object("structured_outputs")) {
    outputs->Unsupported("whitespace_pattern");
    outputs->Unsupported("structural_tag");
    outputs->Unsupported("disable_any_whitespace", {false});
    outputs->Unsupported("disable_additional_properties", {false});
    format.AddGuides(*outputs, "");
  }
  return format.Take();
}

}  // namespace

AnswerShape ShapeOfSchema(const Json& schema, std::string field) {
  std::optional<Json> read;
  if (schema.is_string()) read = TryReadJson(schema.get_ref<const std::string&>());
  const Json& value = read ? *read : schema;
  if (!value.is_object() && !value.is_boolean()) RefuseField(field, "is not a JSON Schema");
  if (CountValues(value) > kMaxSchemaValues) {
    RefuseField(field, Format("has more than {} values", kMaxSchemaValues));
  }
  return {ShapeKind::kJsonSchema, Written(value), std::move(field)};
}

AnswerShape ReadAnswerFormat(const Fields& request) {
  AnswerFormat format;
  if (const auto fields = request.Object("response_format")) {
    format.Add(ShapeOfFormat(*fields, fields->Object("json_schema")));
  }
  return TakeWithAdditions(std::move(format), request);
}

AnswerShape ReadResponsesFormat(const Fields& request) {
  AnswerFormat format;
  if (const auto text = request.Object("text")) {
    text->Unsupported("verbosity", {"medium"}, "is not supported unless it is \"medium\"");
    // The schema is beside the type.
    if (const auto fields = text->Object("format")) format.Add(ShapeOfFormat(*fields, fields));
  }
  return TakeWithAdditions(std::move(format), request);
}

}  // namespace cria::server
