#include "jinja/formatting.h"

#include <algorithm>

#include "jinja/literals.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

// Adds the value as str() writes it; fails if there is none.
void AddFormatted(Context& context, const Text& format, const Value* value, TextBuilder* out) {
  if (value == nullptr) return context.Fail({"a format has more fields than values"});
  const Text& text = ToText(context, *value);
  out->Add(format.is_markup ? Escape(context, text) : text);
}

// The value for a field without a name, with an index, or with a name; null if there is none.
const Value* FindField(Call& call, std::string_view name, size_t* next) {
  const auto& [positional, keywords] = call.given;
  const auto index = name.empty() ? std::optional(static_cast<int64_t>((*next)++))
                                  : ReadWholeNumber(call.context, name, 10);
  if (index) {
    const auto at = static_cast<size_t>(*index);
    return at < positional.size() ? &positional[at] : nullptr;
  }
  const auto found = std::ranges::find(keywords, name, &Keyword::name);
  return found == keywords.end() ? nullptr : &found->value;
}

}  // namespace

Value FormatMethod(Call& call) {
  Context& context = call.context;
  const Text& format = *call.self.text;
  const std::string_view bytes = Flat(context, format);
  context.ChargeBytes(bytes.size());
  TextBuilder out(context);
  size_t next = 0;
  for (size_t at = 0; at < bytes.size() && !context.failed();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    const std::string_view rest = bytes.substr(brace);
    const bool is_doubled = rest.starts_with("{{") || rest.starts_with("}}");
    out.Add(*Slice(context, format, at, is_doubled ? brace + 1 : brace).text);
    at = brace + 2;
    if (is_doubled || rest.empty()) continue;
    const size_t end = rest.find('}');
    const std::string_view name = rest.substr(1, end - 1);
    if (end == 0 || end == rest.npos || name.find_first_of("{.[!:") != name.npos) {
      context.Fail({"a format has '", rest.substr(0, end), "', which is not supported"});
      break;
    }
    AddFormatted(context, format, FindField(call, name, &next), &out);
    at = brace + end + 1;
  }
  return out.Take(format.is_markup);
}

}  // namespace cria::jinja
