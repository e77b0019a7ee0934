#include "jinja/render.h"

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

const Node* Parse(Context& context, std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    context.Fail({"the template is too long"});
    return nullptr;
  }
  source = NormalizeLines(context, source);
  context.set_source(source);
  return Parser(context, source).Parse();
}

}  // namespace

Result<std::vector<Segment>> Render(Context& context, std::string_view source,
                                    std::span<const Variable> globals) {
  const Node* body = Parse(context, source);
  if (context.failed()) return std::unexpected(context.error());
  context.set_code(ErrorCode::kUsage);
  const auto pieces = Interpreter(context, globals).Run(*body);
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

Status Check(std::string_view source) {
  Context context(Limits{}, nullptr);
  Parse(context, source);
  if (context.failed()) return std::unexpected(context.error());
  return {};
}

}  // namespace cria::jinja
