#include "grammar/schema_report.h"

#include <string>

namespace cria::grammar {

void SchemaReport::FailKeyword(ErrorCode code, const jinja::Dict* schema, std::string_view keyword,
                               std::string_view problem) {
  std::string text = "has '";
  text.append(keyword).append("', which ").append(problem);
  Fail(code, schema, text);
}

void SchemaReport::Fail(ErrorCode code, const jinja::Dict* schema, std::string_view problem) {
  if (failed()) return;
  std::string sentence = index_.Place(schema);
  sentence.append(" ").append(problem);
  error_ = Error(code, std::move(sentence));
}

void SchemaReport::Fail(const Error& error) {
  if (!failed()) error_ = error;
}

void SchemaReport::Charge(const jinja::Dict* schema, size_t steps) {
  steps_ += steps;
  if (index_.is_full()) Fail(ErrorCode::kOutOfRange, schema, "makes the schema too large");
  if (steps_ > kMaxSteps) FailCombinations(schema);
}

void SchemaReport::Hold(const jinja::Dict* schema, size_t bytes) {
  held_bytes_ += bytes;
  if (held_bytes_ > kMaxHeldBytes) FailCombinations(schema);
}

void SchemaReport::FailCombinations(const jinja::Dict* schema) {
  Fail(ErrorCode::kOutOfRange, schema,
       "is reached when the schema already has too many combinations of alternatives; fewer "
       "branches of anyOf, oneOf and not, or a const property that differs in all of them, help");
}

}  // namespace cria::grammar
