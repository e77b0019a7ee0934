#include "converter/input/json_fields.h"

#include <limits>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {

using nlohmann::json;

const json* JsonFields::Find(std::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

JsonFields JsonFields::Object(std::string_view name) const {
  static const json kNothing;
  const json* value = Find(name);
  return JsonFields(value == nullptr ? kNothing : *value, where_, PathOf(name));
}

std::string JsonFields::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : Format("{}.{}", path_, name);
}

std::unexpected<Error> JsonFields::Bad(ErrorCode code, std::string_view name,
                                       std::string_view what) const {
  return Fail(code, Format("{}: {} {}", where_, Quotable(PathOf(name)), what));
}

std::unexpected<Error> JsonFields::WrongType(std::string_view name, const json& value,
                                             std::string_view wanted) const {
  return Bad(ErrorCode::kInvalidFile, name, Format("is {}, but must be {}", Text(value), wanted));
}

std::unexpected<Error> JsonFields::Missing(std::string_view name) const {
  return Bad(ErrorCode::kNotFound, name, "is missing; the model cannot be converted without it");
}

Result<uint32_t> JsonFields::Integer(std::string_view name,
                                     std::optional<uint32_t> otherwise) const {
  const json* value = Find(name);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) return Missing(name);
  if (!value->is_number_unsigned() ||
      value->get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    return WrongType(name, *value, "a whole number below 2^32");
  }
  return value->get<uint32_t>();
}

Result<float> JsonFields::Number(std::string_view name, std::optional<float> otherwise) const {
  const json* value = Find(name);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) return Missing(name);
  if (!value->is_number()) return WrongType(name, *value, "a number");
  return value->get<float>();
}

Result<bool> JsonFields::Bool(std::string_view name, bool otherwise) const {
  const json* value = Find(name);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) return WrongType(name, *value, "true or false");
  return value->get<bool>();
}

Result<std::string> JsonFields::String(std::string_view name, std::string_view otherwise) const {
  const json* value = Find(name);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) return WrongType(name, *value, "a string");
  return value->get<std::string>();
}

Result<const json*> JsonFields::Array(std::string_view name) const {
  const json* value = Find(name);
  if (value == nullptr) return Missing(name);
  if (!value->is_array()) return WrongType(name, *value, "an array");
  return value;
}

std::string JsonFields::Text(const json& value) {
  constexpr size_t kMaxCharacters = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMaxCharacters) text = text.substr(0, kMaxCharacters) + "…";
  return text;
}

}  // namespace cria
