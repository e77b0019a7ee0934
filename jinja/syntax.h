#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "jinja/operators.h"
#include "jinja/value.h"

namespace cria::jinja {

enum class NodeKind : uint8_t {
  // Statements. Children in brackets may be null.
  kBody,        // statements…
  kWrite,       // `value`, unchanged
  kPrint,       // expression
  kIf,          // condition, body, condition, body…, [body]
  kFor,         // target, iterated, [condition], body, [else body]; `flag`: recursive
  kSet,         // target, expression
  kSetBlock,    // [target], body, expression: filters of kCaptured, written without a target
  kWith,        // tuple of targets, tuple of expressions, body
  kMacroBlock,  // body, parameter targets…; `name`; defaults are children of the targets. As an
                // expression, it is the macro.
  kBreak,
  kContinue,
  // Expressions.
  kConstant,     // `value`
  kName,         // `name`; [default], as a parameter of a macro, which is one of kGivenNames if
                 // `flag`
  kCaptured,     // The output of the block of a kSetBlock.
  kList,         // items…
  kTuple,        // items…
  kDict,         // key, value, key, value…
  kAttribute,    // object; `name`
  kItem,         // object, index
  kSlice,        // object, [start], [stop], [step]
  kCall,         // callee, arguments…, kKeyword…; kSpread among both
  kKeyword,      // expression; `name`
  kSpread,       // expression: a list of arguments, or a dictionary of keywords if `flag`
  kFilter,       // filtered, arguments…, kKeyword…; `name`
  kTest,         // tested, arguments…, kKeyword…; `name`
  kNot,          // expression
  kSign,         // expression; `flag`: negative
  kOperation,    // left, right; `op`
  kComparison,   // expression, kOperand…
  kOperand,      // expression; `op`
  kAnd,          // left, right
  kOr,           // left, right
  kConditional,  // condition, then, [else]
};

// A part of a parsed template, in the memory of a context.
struct Node {
  NodeKind kind = NodeKind::kBody;
  Operator op = Operator::kAdd;
  bool flag = false;
  uint32_t position = 0;  // Where the node or its operator begins in the source.
  std::string_view name;
  Value value;
  std::span<const Node* const> children;
};

}  // namespace cria::jinja
