#include "server/api/parameter_kind.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace cria::server {
namespace {

ParameterKind KindOfValues(const Json& values) {
  const bool all = std::ranges::all_of(values, [](const Json& value) { return value.is_string(); });
  const bool none =
      std::ranges::none_of(values, [](const Json& value) { return value.is_string(); });
  return all ? ParameterKind::kText : none ? ParameterKind::kValue : ParameterKind::kEither;
}

ParameterKind KindWithin(const Json& schema, const Json& root, size_t depth) {
  constexpr size_t kMaxDepth = 16;
  if (!schema.is_object() || depth > kMaxDepth) return ParameterKind::kEither;
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    const Json* const target = FollowReference(*reference, root);
    return target == nullptr ? ParameterKind::kEither : KindWithin(*target, root, depth + 1);
  }
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (*type == "string") return ParameterKind::kText;
    if (type->is_string()) return ParameterKind::kValue;
    if (type->is_array() && !std::ranges::contains(*type, Json("string"))) {
      return ParameterKind::kValue;
    }
    return ParameterKind::kEither;
  }
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    return KindOfValues(*values);
  }
  if (const auto value = schema.find("const"); value != schema.end()) {
    return value->is_string() ? ParameterKind::kText : ParameterKind::kValue;
  }
  for (const std::string_view key : {"anyOf", "oneOf"}) {
    const auto options = schema.find(key);
    if (options == schema.end() || !options->is_array() || options->empty()) continue;
    const auto kind_of = [&](const Json& option) { return KindWithin(option, root, depth + 1); };
    const ParameterKind first = kind_of(options->front());
    const bool is_one =
        std::ranges::all_of(*options, [&](const Json& option) { return kind_of(option) == first; });
    return is_one ? first : ParameterKind::kEither;
  }
  return ParameterKind::kEither;
}

}  // namespace

const Json* FollowReference(const Json& reference, const Json& root) {
  if (!reference.is_string()) return nullptr;
  const auto& text = reference.get_ref<const std::string&>();
  if (!text.starts_with("#/")) return nullptr;
  try {
    return &root.at(Json::json_pointer(text.substr(1)));
  } catch (const Json::exception&) {
    return nullptr;
  }
}

ParameterKind KindOf(const Json& schema, const Json& root) { return KindWithin(schema, root, 0); }

}  // namespace cria::server
