#include "cli/flags/constraint_options.h"

#include <utility>

#include "cli/input/text_file.h"
#include "core/format.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"

namespace cria::cli {
namespace {

constexpr const char* kConstraintGroup = "What the text must match";

struct ConstraintText {
  grammar::ConstraintKind kind = grammar::ConstraintKind::kJson;
  std::string origin;  // For errors.
  std::string text;
};

Result<ConstraintText> ReadConstraintText(const ConstraintOptions& options) {
  ConstraintText read = {.origin = "--any-json"};
  if (options.regex) {
    return ConstraintText{grammar::ConstraintKind::kRegex, "--regex", *options.regex};
  }
  if (options.json_schema_path) {
    read.kind = grammar::ConstraintKind::kJsonSchema;
    read.origin = *options.json_schema_path;
  } else if (options.grammar_path) {
    read.kind = grammar::ConstraintKind::kGbnf;
    read.origin = *options.grammar_path;
  } else {
    return read;
  }
  const bool is_schema = read.kind == grammar::ConstraintKind::kJsonSchema;
  const TextBound bound = is_schema ? TextBound{grammar::kMaxSchemaBytes, "a schema may have"}
                                    : TextBound{grammar::kMaxGbnfBytes, "a grammar may have"};
  CRIA_ASSIGN_OR_RETURN(read.text, ReadTextFile(read.origin, bound));
  return read;
}

}  // namespace

Result<std::unique_ptr<Constraint>> ConstraintOptions::Make(Engine& engine) const {
  if (!is_given()) return nullptr;
  CRIA_ASSIGN_OR_RETURN(const ConstraintText read, ReadConstraintText(*this));
  CRIA_ASSIGN_OR_RETURN(std::unique_ptr<Constraint> constraint, engine.NewConstraint());
  const Status set = constraint->Set({read.kind, read.text});
  if (set) return constraint;
  return Fail(set.error().code(), Format("{}: {}", read.origin, set.error().message()),
              set.error().remedy());
}

void AddConstraintOptions(CommandLine& command, ConstraintOptions& options) {
  const char* group = kConstraintGroup;
  Option& schema = command
                       .AddText("--json-schema", options.json_schema_path,
                                "A file with a JSON Schema: the text is JSON that is valid by it")
                       .Metavar("FILE")
                       .Group(group);
  Option& grammar =
      command
          .AddText("--grammar", options.grammar_path,
                   "A file with a grammar in GBNF, llama.cpp's notation, that describes the text")
          .Excludes(schema)
          .Metavar("FILE")
          .Group(group);
  Option& regex = command
                      .AddText("--regex", options.regex,
                               "A regular expression of JavaScript that matches the whole text")
                      .Excludes(schema)
                      .Excludes(grammar)
                      .Metavar("PATTERN")
                      .Group(group);
  command.AddFlag("--any-json", options.any_json, "The text is any JSON value")
      .Excludes(schema)
      .Excludes(grammar)
      .Excludes(regex)
      .Group(group);
}

}  // namespace cria::cli
