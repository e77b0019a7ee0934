#include "server/calls/parameter_kind.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace cria::server {
namespace {

ParameterKind KindOfValues(const Json& values) {
  const bool all = std::ranges::all_of(values, [](const Json& value) { return value.is_string(); });
  const bool none =
      std::ranges::none_of(values, [](const Json& value) { return value.is_string(); });
  return all ? ParameterKind::kText : none ? ParameterKind::kValue : ParameterKind::kEither;
}

// `num_visits` counts the schemas that are looked at: options that refer to each other would
// otherwise be followed in every order.
ParameterKind KindWithin(const Json& schema, const Json& root, size_t& num_visits) {
  constexpr size_t kMaxVisits = 256;
  if (!schema.is_object() || ++num_visits > kMaxVisits) return ParameterKind::kEither;
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    const Json* const target = FollowReference(*reference, root);
    return target == nullptr ? ParameterKind::kEither : KindWithin(*target, root, num_visits);
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
    const ParameterKind first = KindWithin(options->front(), root, num_visits);
    const bool is_one = std::all_of(options->begin() + 1, options->end(), [&](const Json& option) {
      return KindWithin(option, root, num_visits) == first;
    });
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

ParameterKind KindOf(const Json& schema, const Json& root) {
  size_t num_visits = 0;
  return KindWithin(schema, root, num_visits);
}

bool IsRequired(const Json& schema, std::string_view name) {
  const auto required = schema.find("required");
  return required != schema.end() && required->is_array() &&
         std::ranges::contains(*required, Json(name));
}

}  // namespace cria::server
