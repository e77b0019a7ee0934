// How the Interpreter evaluates lists, comparisons, filters, tests and calls. interpreter.cc has
// the rest.

#include <utility>

#include "jinja/interpreter.h"

namespace cria::jinja {
namespace {

// The methods by which Python changes lists and dictionaries.
constexpr char kChangingMethods[] =
    " append clear extend insert pop popitem remove reverse setdefault sort update ";

}  // namespace

Value Interpreter::EvaluateItems(const Node& node, Kind kind) {
  Growing<Value> items(context_);
  for (const Node* item : node.children) items.Add(Evaluate(*item));
  return MakeList(context_, items.items(), kind);
}

Value Interpreter::EvaluateDict(const Node& node) {
  Growing<Entry> entries(context_);
  for (size_t i = 0; i + 1 < node.children.size() && !context_.failed(); i += 2) {
    const Value key = Evaluate(*node.children[i]);
    const Value value = Evaluate(*node.children[i + 1]);
    Entry* same = nullptr;
    for (Entry& entry : entries.items()) {
      if (Equal(context_, entry.key, key)) same = &entry;
    }
    if (same != nullptr) {
      same->value = value;
    } else {
      entries.Add({key, value});
    }
  }
  return MakeDict(context_, entries.items());
}

// a < b < c is (a < b) and (b < c).
Value Interpreter::EvaluateComparison(const Node& node) {
  Value left = Evaluate(*node.children[0]);
  for (const Node* operand : node.children.subspan(1)) {
    const Value right = Evaluate(*operand->children[0]);
    context_.set_position(operand->position);
    if (context_.failed()) return {};
    if (!IsTrue(ApplyOperator(context_, operand->op, left, right))) return Bool(false);
    left = right;
  }
  return Bool(true);
}

Arguments Interpreter::EvaluateArguments(const Node& node) {
  Growing<Value> positional(context_);
  Growing<Keyword> keywords(context_);
  for (const Node* argument : node.children.subspan(1)) {
    const bool has_child =
        argument->kind == NodeKind::kKeyword || argument->kind == NodeKind::kSpread;
    const Value value = Evaluate(has_child ? *argument->children[0] : *argument);
    if (argument->kind == NodeKind::kKeyword) {
      keywords.Add({argument->name, value});
    } else if (argument->kind == NodeKind::kSpread) {
      Spread(value, argument->flag, positional, keywords);
    } else {
      positional.Add(value);
    }
  }
  return {positional.items(), keywords.items()};
}

// Adds the arguments that a list has, or a dictionary if `has_names`.
void Interpreter::Spread(const Value& value, bool has_names, Growing<Value>& positional,
                         Growing<Keyword>& keywords) {
  if (has_names && !value.is(Kind::kDict)) {
    return context_.Fail("'**' is not followed by a dictionary");
  }
  for (const Value& item : Items(context_, value)) {
    context_.Charge(1);
    if (has_names) {
      keywords.Add(
          {Flat(context_, ToText(context_, item)), *Find(context_, value.dict->entries, item)});
    } else {
      positional.Add(item);
    }
    if (context_.failed()) return;
  }
}

// A filter or a test.
Value Interpreter::EvaluateNative(const Node& node, const Native* native, std::string_view what) {
  if (native == nullptr) {
    context_.Fail({"the ", what, " '", node.name, "' is not known"});
    return {};
  }
  const Value self = Evaluate(*node.children[0]);
  const Arguments arguments = EvaluateArguments(node);
  context_.set_position(node.position);
  return context_.failed() ? Value() : Apply(context_, *native, self, arguments);
}

Value Interpreter::EvaluateCall(const Node& node) {
  const Value callee = Evaluate(*node.children[0]);
  const Arguments arguments = EvaluateArguments(node);
  context_.set_position(node.position);
  if (context_.failed()) return {};
  switch (callee.kind) {
    case Kind::kFunction:
      return Apply(context_, *callee.function, {}, arguments);
    case Kind::kMethod:
      return Apply(context_, *callee.method->native, callee.method->self, arguments);
    case Kind::kMacro:
      return CallMacro(*callee.macro, arguments);
    case Kind::kLoop:
      return CallLoop(*callee.loop, arguments);
    case Kind::kUndefined:
      if (const Node& method = *node.children[0];
          method.kind == NodeKind::kAttribute && IsListed(kChangingMethods, method.name)) {
        context_.Fail({"'", method.name, "()' changes a value, which a template must not do"});
      }
      FailOfUndefined(context_, callee, ", so it cannot be called");
      return {};
    default:
      return FailOfType(context_, callee, " cannot be called");
  }
}

}  // namespace cria::jinja
