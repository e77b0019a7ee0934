#include "jinja/interpreter.h"

#include <algorithm>
#include <utility>

namespace cria::jinja {

// The variables of the template, a macro or an iteration of a loop; variables of the surrounding
// scope can be read, but not changed.
struct Interpreter::Scope {
  struct Binding {
    std::string_view name;
    Value value;
    Binding* next;
  };

  Scope* parent = nullptr;
  Binding* first = nullptr;
};

struct Macro {
  const Node* node;
  Interpreter::Scope* scope;  // The scope in which it was defined.
};

struct Recursion {
  const Node* node;           // The kFor.
  Interpreter::Scope* scope;  // The scope around the loop.
};

Interpreter::Interpreter(Context& context, std::span<const Variable> globals) : context_(context) {
  scope_ = context_.New<Scope>({});
  for (const Variable& variable : globals) Define(variable.name, variable.value);
}

std::span<const Piece> Interpreter::Run(const Node& body) {
  TextBuilder output(context_);
  output_ = &output;
  scope_ = context_.New<Scope>({.parent = scope_});
  Execute(body);
  return output.pieces();
}

Value Interpreter::Lookup(std::string_view name) {
  size_t seen = 0;
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const Scope::Binding* binding = scope->first; binding != nullptr;
         binding = binding->next) {
      if (binding->name == name) return binding->value;
      ++seen;
    }
  }
  context_.Charge(seen / 8);
  if (const Native* function = FindFunction(name)) {
    Value value;
    value.kind = Kind::kFunction;
    value.function = function;
    return value;
  }
  return Undefined(context_, name);
}

void Interpreter::Define(std::string_view name, const Value& value) {
  size_t seen = 0;
  for (Scope::Binding* binding = scope_->first; binding != nullptr; binding = binding->next) {
    if (binding->name == name) {
      binding->value = value;
      return;
    }
    ++seen;
  }
  context_.Charge(seen / 8);
  scope_->first = context_.New<Scope::Binding>({name, value, scope_->first});
}

void Interpreter::Assign(const Node& target, const Value& value) {
  if (target.kind == NodeKind::kName) return Define(target.name, value);
  if (target.kind == NodeKind::kAttribute) return AssignAttribute(target, value);
  const auto items = Items(context_, value);
  if (items.size() != target.children.size()) {
    return context_.Fail("a value does not have as many items as there are names");
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.children[i], items[i]);
}

void Interpreter::AssignAttribute(const Node& target, const Value& value) {
  const Value object = Lookup(target.children[0]->name);
  if (!object.is(Kind::kNamespace)) {
    return context_.Fail({"'", target.children[0]->name, ".", target.name,
                          "' cannot be set: only a namespace has such variables"});
  }
  std::span<Entry>& entries = object.attributes->entries;
  context_.Charge(entries.size() / 8);
  for (Entry& entry : entries) {
    if (Find({&entry, 1}, target.name) == nullptr) continue;
    entry.value = value;
    return;
  }
  Growing<Entry> grown(context_);
  for (const Entry& entry : entries) grown.Add(entry);
  grown.Add({Trusted(context_, target.name), value});
  entries = grown.items();
}

bool Interpreter::Enter(const Node& node) {
  if (context_.failed()) return false;
  context_.set_position(node.position);
  context_.Charge(1);
  if (depth_ >= kMaxDepth) context_.Fail("blocks, expressions or calls are nested too deeply");
  return !context_.failed();
}

Interpreter::Flow Interpreter::Execute(const Node& node) {
  if (!Enter(node)) return Flow::kBreak;
  ++depth_;
  const Flow flow = ExecuteStatement(node);
  --depth_;
  return context_.failed() ? Flow::kBreak : flow;
}

Interpreter::Flow Interpreter::ExecuteStatement(const Node& node) {
  switch (node.kind) {
    case NodeKind::kBody:
      return ExecuteBody(node);
    case NodeKind::kWrite:
      Print(*node.value.text);
      break;
    case NodeKind::kPrint: {
      const Value value = Evaluate(*node.children[0]);
      context_.set_position(node.position);
      if (!context_.failed()) Print(ToText(context_, value));
      break;
    }
    case NodeKind::kIf:
      return ExecuteIf(node);
    case NodeKind::kFor:
      return ExecuteFor(node);
    case NodeKind::kSet: {
      const Value value = Evaluate(*node.children[1]);
      context_.set_position(node.position);
      if (!context_.failed()) Assign(*node.children[0], value);
      break;
    }
    case NodeKind::kSetBlock:
      ExecuteSetBlock(node);
      break;
    case NodeKind::kWith:
      return ExecuteWith(node);
    case NodeKind::kMacroBlock:
      Define(node.name, EvaluateExpression(node));
      break;
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      break;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::ExecuteBody(const Node& body) {
  for (const Node* statement : body.children) {
    if (const Flow flow = Execute(*statement); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::ExecuteIf(const Node& node) {
  const auto children = node.children;
  size_t i = 0;
  for (; i + 1 < children.size(); i += 2) {
    if (IsTrue(Evaluate(*children[i]))) return Execute(*children[i + 1]);
  }
  return i < children.size() ? Execute(*children[i]) : Flow::kNext;
}

// The items for which the condition of a loop is true.
std::span<const Value> Interpreter::Filter(const Node& target, const Node& condition,
                                           std::span<const Value> items) {
  Growing<Value> chosen(context_);
  Scope* const outside = scope_;
  for (const Value& item : items) {
    scope_ = context_.New<Scope>({.parent = outside});
    Assign(target, item);
    if (IsTrue(Evaluate(condition))) chosen.Add(item);
    if (context_.failed()) break;
  }
  scope_ = outside;
  return chosen.items();
}

Interpreter::Flow Interpreter::ExecuteFor(const Node& node) {
  return RunLoop(node, Evaluate(*node.children[1]), 0);
}

Interpreter::Flow Interpreter::RunLoop(const Node& node, const Value& iterated, int depth) {
  const auto children = node.children;
  const Node& target = *children[0];
  context_.set_position(node.position);
  std::span<const Value> items = Items(context_, iterated);
  if (children[2] != nullptr) items = Filter(target, *children[2], items);
  if (context_.failed()) return Flow::kBreak;
  if (items.empty()) return children[4] == nullptr ? Flow::kNext : Execute(*children[4]);

  Loop* loop = context_.New<Loop>({.items = items, .depth = depth});
  if (node.flag) loop->recursion = context_.New<Recursion>({&node, scope_});
  Value variable;
  variable.kind = Kind::kLoop;
  variable.loop = loop;
  Scope* const outside = scope_;
  for (; loop->index < items.size() && !context_.failed(); ++loop->index) {
    scope_ = context_.New<Scope>({.parent = outside});
    Define("loop", variable);
    Assign(target, items[loop->index]);
    if (Execute(*children[3]) == Flow::kBreak) break;
  }
  scope_ = outside;
  return Flow::kNext;
}

void Interpreter::ExecuteSetBlock(const Node& node) {
  const Value outside = std::exchange(captured_, Capture(*node.children[1]));
  const Value value = Evaluate(*node.children[2]);
  captured_ = outside;
  if (context_.failed()) return;
  if (node.children[0] == nullptr) return Print(ToText(context_, value));
  Assign(*node.children[0], value);
}

Interpreter::Flow Interpreter::ExecuteWith(const Node& node) {
  const Value values = Evaluate(*node.children[1]);
  if (context_.failed()) return Flow::kBreak;
  Scope* const outside = std::exchange(scope_, context_.New<Scope>({.parent = scope_}));
  Assign(*node.children[0], values);
  const Flow flow = Execute(*node.children[2]);
  scope_ = outside;
  return flow;
}

void Interpreter::Print(const Text& text) {
  context_.ChargeOutput(text.size_bytes);
  output_->Add(text);
}

Value Interpreter::Capture(const Node& body) {
  TextBuilder captured(context_);
  TextBuilder* const outside = std::exchange(output_, &captured);
  Scope* const scope_outside = std::exchange(scope_, context_.New<Scope>({.parent = scope_}));
  Execute(body);
  scope_ = scope_outside;
  output_ = outside;
  return captured.Take();
}

Value Interpreter::Evaluate(const Node& node) {
  if (!Enter(node)) return {};
  ++depth_;
  const Value value = EvaluateExpression(node);
  --depth_;
  return context_.failed() ? Value() : value;
}

Value Interpreter::EvaluateIfThere(const Node* node) {
  return node == nullptr ? Value() : Evaluate(*node);
}

Value Interpreter::EvaluateExpression(const Node& node) {
  const auto children = node.children;
  const auto child = [&](size_t i) { return Evaluate(*children[i]); };
  switch (node.kind) {
    case NodeKind::kConstant:
      return node.value;
    case NodeKind::kName:
      return Lookup(node.name);
    case NodeKind::kCaptured:
      return captured_;
    case NodeKind::kList:
    case NodeKind::kTuple:
      return EvaluateItems(node, node.kind == NodeKind::kList ? Kind::kList : Kind::kTuple);
    case NodeKind::kDict:
      return EvaluateDict(node);
    case NodeKind::kAttribute: {
      const Value object = child(0);
      context_.set_position(node.position);
      return GetAttribute(context_, object, node.name);
    }
    case NodeKind::kItem: {
      const Value object = child(0);
      const Value index = child(1);
      return GetItem(context_, object, index);
    }
    case NodeKind::kSlice: {
      const Value object = child(0);
      const Value start = EvaluateIfThere(children[1]);
      const Value stop = EvaluateIfThere(children[2]);
      const Value step = EvaluateIfThere(children[3]);
      return GetSlice(context_, object, start, stop, step);
    }
    case NodeKind::kMacroBlock: {
      Value value;
      value.kind = Kind::kMacro;
      value.macro = context_.New<Macro>({&node, scope_});
      return value;
    }
    case NodeKind::kCall:
      return EvaluateCall(node);
    case NodeKind::kFilter:
      return EvaluateNative(node, FindFilter(node.name), "filter");
    case NodeKind::kTest:
      return EvaluateNative(node, FindTest(node.name), "test");
    case NodeKind::kNot:
      return Bool(!IsTrue(child(0)));
    case NodeKind::kSign:
      return ApplySign(context_, node.flag, child(0));
    case NodeKind::kOperation: {
      const Value left = child(0);
      const Value right = child(1);
      context_.set_position(node.position);
      return ApplyOperator(context_, node.op, left, right);
    }
    case NodeKind::kComparison:
      return EvaluateComparison(node);
    case NodeKind::kAnd:
    case NodeKind::kOr: {
      const Value left = child(0);
      return IsTrue(left) == (node.kind == NodeKind::kAnd) ? child(1) : left;
    }
    case NodeKind::kConditional:
      return IsTrue(child(0)) ? child(1) : EvaluateIfThere(children[2]);
    default:
      return {};
  }
}

// Adds their number to `count`.
Value Interpreter::ExtraArguments(std::span<const Node* const> parameters,
                                  const Arguments& arguments, bool has_names, size_t* count) {
  const auto own = static_cast<size_t>(
      std::ranges::count_if(parameters, [](const Node* parameter) { return !parameter->flag; }));
  if (!has_names) {
    const auto extra = arguments.positional.subspan(std::min(own, arguments.positional.size()));
    *count += extra.size();
    return MakeList(context_, extra, Kind::kTuple);
  }
  Growing<Entry> entries(context_);
  for (const Keyword& keyword : arguments.keywords) {
    const bool is_own = std::ranges::any_of(
        parameters, [&](const Node* parameter) { return parameter->name == keyword.name; });
    if (!is_own) entries.Add({Untrusted(context_, keyword.name), keyword.value});
  }
  *count += entries.size();
  return MakeDict(context_, entries.items());
}

Value Interpreter::CallMacro(const Macro& macro, const Arguments& arguments) {
  const auto parameters = macro.node->children.subspan(1);
  Scope* const outside = std::exchange(scope_, context_.New<Scope>({.parent = macro.scope}));
  size_t used = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Node& parameter = *parameters[i];
    const bool has_names = parameter.name == "kwargs";
    if (parameter.flag && (has_names || parameter.name == "varargs")) {
      Define(parameter.name, ExtraArguments(parameters, arguments, has_names, &used));
      continue;
    }
    const Value* given = nullptr;
    if (i < arguments.positional.size() && !parameter.flag) given = &arguments.positional[i];
    for (const Keyword& keyword : arguments.keywords) {
      if (keyword.name == parameter.name) given = &keyword.value;
    }
    if (given != nullptr) {
      ++used;
      Define(parameter.name, *given);
    } else {
      Define(parameter.name, parameter.children.empty() ? Undefined(context_, parameter.name)
                                                        : Evaluate(*parameter.children[0]));
    }
  }
  if (used != arguments.positional.size() + arguments.keywords.size()) {
    context_.Fail({"'", macro.node->name, "' is given an argument that it does not take"});
  }
  const Value written = Capture(*macro.node->children[0]);
  scope_ = outside;
  return written;
}

Value Interpreter::CallLoop(const Loop& loop, const Arguments& arguments) {
  if (loop.recursion == nullptr) {
    context_.Fail("a loop that is not marked 'recursive' cannot be called");
    return {};
  }
  if (arguments.positional.size() != 1 || !arguments.keywords.empty()) {
    context_.Fail("a recursive loop is called with one argument, the values to loop over");
    return {};
  }
  TextBuilder captured(context_);
  TextBuilder* const outside = std::exchange(output_, &captured);
  Scope* const scope_outside = std::exchange(scope_, loop.recursion->scope);
  RunLoop(*loop.recursion->node, arguments.positional[0], loop.depth + 1);
  scope_ = scope_outside;
  output_ = outside;
  return captured.Take();
}

Value MacroAttribute(Context& context, const Macro& macro, std::string_view name) {
  if (name == "name") return Trusted(context, macro.node->name);
  context.Fail({"'", name, "' of a macro is not supported"});
  return {};
}

}  // namespace cria::jinja
