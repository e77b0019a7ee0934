#include "grammar/json_schema.h"

#include <array>
#include <ctime>
#include <string>

#include "core/utf8.h"
#include "grammar/json_text.h"
#include "grammar/schema_index.h"
#include "grammar/schema_report.h"
#include "grammar/schema_translator.h"
#include "jinja/context.h"
#include "jinja/json_reader.h"

namespace cria::grammar {
namespace {

// How many schemas that contain themselves without end are left out.
constexpr int kMaxExcluded = 16;

// The values of a schema, and what is made of its constants: a part of kMaxReadingBytes.
constexpr size_t kMaxValueBytes = size_t{3} << 20;

constexpr const char* kTooLarge =
    "the schema is too large: it must have at most 256 KiB, and some thousand names";

std::tm NoTime() { return {}; }

Result<Node> Checked(Expressions& expressions, Node node) {
  CRIA_RETURN_IF_ERROR(expressions.status());
  return node;
}

}  // namespace

Result<Node> ReadJsonSchema(Expressions& expressions, std::string_view json) {
  if (json.size() > kMaxSchemaBytes) return Fail(ErrorCode::kOutOfRange, kTooLarge);
  if (ValidUtf8Prefix(json) < json.size()) {
    return Fail(ErrorCode::kUsage, "the schema is not UTF-8");
  }
  jinja::Context context({.steps = 4'000'000, .memory_bytes = kMaxValueBytes}, NoTime);
  context.set_code(ErrorCode::kUsage);
  const Result<jinja::Value> root = jinja::ReadJson(context, json, jinja::JsonNumbers::kExact);
  if (context.failed()) return Fail(ErrorCode::kOutOfRange, kTooLarge);
  if (!root) return Fail(ErrorCode::kUsage, "the schema is not JSON: " + root.error().message());
  SchemaIndex index(context, *root);
  SchemaReport report(index);
  SchemaTranslator translator(expressions, context, index, report);
  Node node = translator.Translate(std::array{Term{*root}});
  for (int i = 0; i < kMaxExcluded && !report.failed(); ++i) {
    // A schema that demands itself as a part has no value, but others may do without it.
    const Expressions::RuleProblem problem = expressions.FindRuleProblem(node);
    if (problem.kind != Expressions::RuleProblem::Kind::kNothing) break;
    if (!translator.Exclude(problem.rule)) break;
    node = translator.Translate(std::array{Term{*root}});
  }
  CRIA_RETURN_IF_ERROR(expressions.status());
  if (context.failed()) return Fail(ErrorCode::kOutOfRange, kTooLarge);
  if (report.failed()) return std::unexpected(report.error());
  if (node == Expressions::kNothing) {
    translator.scalars().FailBeyondDigits();
    if (report.failed()) return std::unexpected(report.error());
    return Fail(ErrorCode::kUsage, index.Place(translator.contradiction()) +
                                       " is a contradiction: no value matches all of its keywords");
  }
  return node;
}

Result<Node> AnyJson(Expressions& expressions) {
  return Checked(expressions, JsonText(expressions).AnyValue());
}

Result<Node> AnyJsonObject(Expressions& expressions) {
  return Checked(expressions, JsonText(expressions).AnyObject());
}

}  // namespace cria::grammar
