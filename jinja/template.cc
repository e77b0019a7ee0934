#include "jinja/template.h"

#include <algorithm>

#include "jinja/parser.h"

namespace cria::jinja {
namespace {

// The template with only line feeds as line breaks, and none at the end. The result is in the
// context's memory, or is the source.
std::string_view NormalizeLines(Context& context, std::string_view source) {
  if (source.contains('\r')) {
    const std::span<char> copy = context.Array<char>(source.size());
    size_t size = 0;
    for (size_t i = 0; i < copy.size(); ++i) {
      const bool is_return = source[i] == '\r';
      copy[size++] = is_return ? '\n' : source[i];
      if (is_return && i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
    source = {copy.data(), size};
  }
  if (source.ends_with('\n')) source.remove_suffix(1);
  return source;
}

// What a part of a template does first with a variable.
enum class FirstUse : uint8_t { kNone, kRead, kSet };

FirstUse FindFirstUse(const Node* node, std::string_view variable);

// What an if does first with the variable: it may read it if one of its parts does, and it sets it
// only if all of its bodies do.
FirstUse FirstUseOfIf(std::span<const Node* const> children, std::string_view variable) {
  size_t i = 0;
  bool always_sets = children.size() % 2 == 1;  // There is an else.
  for (; i < children.size(); ++i) {
    const FirstUse use = FindFirstUse(children[i], variable);
    if (use == FirstUse::kRead) return use;
    const bool is_body = i % 2 == 1 || i + 1 == children.size();
    always_sets = always_sets && (!is_body || use == FirstUse::kSet);
  }
  return always_sets ? FirstUse::kSet : FirstUse::kNone;
}

// Looks at the parts in the order in which they run.
FirstUse FindFirstUse(const Node* node, std::string_view variable) {
  if (node == nullptr) return FirstUse::kNone;
  const auto children = node->children;
  switch (node->kind) {
    case NodeKind::kName:
      if (node->name == variable) return FirstUse::kRead;
      break;
    case NodeKind::kIf:
      return FirstUseOfIf(children, variable);
    case NodeKind::kSet:
    case NodeKind::kSetBlock: {
      for (const Node* value : children.subspan(1)) {
        if (FindFirstUse(value, variable) == FirstUse::kRead) return FirstUse::kRead;
      }
      // In a target, the name stands for setting it.
      const FirstUse target = FindFirstUse(children[0], variable);
      return target == FirstUse::kNone ? target : FirstUse::kSet;
    }
    case NodeKind::kFor:
    case NodeKind::kWith:
      if (FindFirstUse(children[1], variable) == FirstUse::kRead) return FirstUse::kRead;
      // Its own variables hide the host's.
      if (FindFirstUse(children[0], variable) != FirstUse::kNone) return FirstUse::kNone;
      break;
    case NodeKind::kMacroBlock:
      for (const Node* parameter : children.subspan(1)) {
        if (parameter->name == variable) return FirstUse::kNone;
      }
      break;
    default:
      break;
  }
  for (const Node* child : children) {
    const FirstUse use = FindFirstUse(child, variable);
    if (use == FirstUse::kNone) continue;
    // What these set is lost after them.
    const bool is_scope = node->kind == NodeKind::kFor || node->kind == NodeKind::kWith ||
                          node->kind == NodeKind::kMacroBlock;
    return is_scope && use == FirstUse::kSet ? FirstUse::kNone : use;
  }
  return FirstUse::kNone;
}

}  // namespace

Template::Template(std::string_view source, const Limits& limits)
    : context_(limits, nullptr), body_(nullptr) {
  if (source.size() > kMaxTemplateBytes) {
    context_.Fail("the template is too long");
    return;
  }
  source_ = NormalizeLines(context_, source);
  context_.set_source(source_);
  body_ = Parser(context_, source_).Parse();
}

Status Template::status() const {
  if (context_.failed()) return std::unexpected(context_.error());
  return {};
}

Result<std::vector<Segment>> Template::Render(Context& context,
                                              std::span<const Variable> globals) const {
  CRIA_RETURN_IF_ERROR(status());
  context.set_source(source_);
  context.set_code(ErrorCode::kUsage);
  const auto pieces = Interpreter(context, globals).Run(*body_);
  if (context.failed()) return std::unexpected(context.error());
  std::vector<Segment> segments;
  for (const Piece& piece : pieces) {
    if (segments.empty() || segments.back().is_trusted != piece.is_trusted) {
      segments.push_back({{}, piece.is_trusted});
    }
    segments.back().text += piece.bytes;
  }
  return segments;
}

bool Template::Reads(std::string_view variable) const {
  return !context_.failed() && FindFirstUse(body_, variable) == FirstUse::kRead;
}

}  // namespace cria::jinja
