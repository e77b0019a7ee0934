#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "llm/engine.h"

namespace cria::cli {

// What a generated text must match, as the command line says it.
struct ConstraintOptions {
  std::optional<std::string> json_schema_path;
  std::optional<std::string> grammar_path;
  std::optional<std::string> regex;
  bool any_json = false;

  bool is_given() const { return json_schema_path || grammar_path || regex || any_json; }
  // The engine must have been loaded for one constraint. Null if none is given. An error names the
  // file or the option.
  Result<std::unique_ptr<Constraint>> Make(Engine& engine) const;
};

// --json-schema, --grammar, --regex and --any-json, of which one may be given.
void AddConstraintOptions(CommandLine& command, ConstraintOptions& options);

}  // namespace cria::cli
