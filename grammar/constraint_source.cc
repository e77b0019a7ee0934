#include "grammar/constraint_source.h"

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/pattern.h"

namespace cria::grammar {

Result<Node> ReadConstraint(Expressions& expressions, const ConstraintSource& source) {
  switch (source.kind) {
    case ConstraintKind::kJsonSchema:
      return ReadJsonSchema(expressions, source.text);
    case ConstraintKind::kJsonSchemaAtBegin: {
      CRIA_ASSIGN_OR_RETURN(const Node value, ReadJsonSchema(expressions, source.text));
      return expressions.Sequence(value, Expressions::kEverything);
    }
    case ConstraintKind::kJson:
      return AnyJson(expressions);
    case ConstraintKind::kJsonObject:
      return AnyJsonObject(expressions);
    case ConstraintKind::kGbnf:
      return ReadGbnf(expressions, source.text);
    case ConstraintKind::kRegex:
      break;
  }
  return ReadPattern(expressions, source.text, CharacterEncoding::kUtf8, /*anchored=*/true);
}

}  // namespace cria::grammar
