#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "jinja/context.h"
#include "jinja/natives.h"
#include "jinja/syntax.h"
#include "jinja/text.h"
#include "jinja/value.h"

namespace cria::jinja {

struct Variable {
  std::string_view name;
  Value value;
};

// Runs a parsed template.
class Interpreter {
 public:
  Interpreter(Context& context, std::span<const Variable> globals);

  // The output of the template; undefined after a failure.
  std::span<const Piece> Run(const Node& body);

 private:
  struct Scope;
  friend struct Macro;
  friend struct Recursion;
  // How execution goes on.
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  // Counts a step, and fails if the node is nested too deeply. Returns whether nothing has failed.
  bool Enter(const Node& node);
  Flow Execute(const Node& node);
  Flow ExecuteStatement(const Node& node);
  Flow ExecuteBody(const Node& body);
  Flow ExecuteIf(const Node& node);
  Flow ExecuteFor(const Node& node);
  // Runs a kFor over other values than its own; `depth` is that of the loop.
  Flow RunLoop(const Node& node, const Value& iterated, int depth);
  void ExecuteSetBlock(const Node& node);
  Flow ExecuteWith(const Node& node);
  void Print(const Text& text);
  // The output of the body, as a string. Variables that it sets are its own.
  Value Capture(const Node& body);

  Value Evaluate(const Node& node);
  Value EvaluateExpression(const Node& node);
  Value EvaluateCall(const Node& node);
  Value EvaluateNative(const Node& node, const Native* native, std::string_view what);
  Value EvaluateComparison(const Node& node);
  Value EvaluateDict(const Node& node);
  Value EvaluateItems(const Node& node, Kind kind);
  Value EvaluateIfThere(const Node* node);
  // The values of all children except the first.
  Arguments EvaluateArguments(const Node& node);
  void Spread(const Value& value, bool has_names, Growing<Value>& positional,
              Growing<Keyword>& keywords);
  // The arguments beyond the macro's parameters: a tuple, or a dictionary if `has_names`.
  Value ExtraArguments(std::span<const Node* const> parameters, const Arguments& arguments,
                       bool has_names, size_t* count);
  Value CallMacro(const Macro& macro, const Arguments& arguments);
  // What a recursive loop writes for the values that are its argument.
  Value CallLoop(const Loop& loop, const Arguments& arguments);

  Value Lookup(std::string_view name);
  void Define(std::string_view name, const Value& value);
  void Assign(const Node& target, const Value& value);
  void AssignAttribute(const Node& target, const Value& value);
  std::span<const Value> Filter(const Node& target, const Node& condition,
                                std::span<const Value> items);

  Context& context_;
  Scope* scope_ = nullptr;
  TextBuilder* output_ = nullptr;
  Value captured_;
  int depth_ = 0;
};

}  // namespace cria::jinja
