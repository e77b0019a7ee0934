#include "server/requests/fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/format.h"
#include "server/requests/request_error.h"

namespace cria::server {

Fields::Fields(const Json& object, std::string path) : object_(&object), path_(std::move(path)) {
  if (!object.is_object()) RefuseField(path_.empty() ? "the request" : path_, "is not an object");
}

const Json* Fields::Find(std::string_view name) const {
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

std::optional<bool> Fields::Bool(std::string_view name) const {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) RefuseField(PathOf(name), "is neither true nor false");
  return value->get<bool>();
}

std::optional<double> Fields::Number(std::string_view name, double min, double max) const {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = NumberOf(*value);
  if (!number) RefuseField(PathOf(name), "is not a number");
  if (!(*number >= min && *number <= max)) {
    RefuseField(PathOf(name), Format("is {}, but must be {} to {}", *number, min, max));
  }
  return number;
}

std::optional<int64_t> Fields::Integer(std::string_view name, int64_t min, int64_t max) const {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  // Some clients write whole numbers as 5.0.
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const double real = NumberOf(*value).value_or(0.5);
  const bool is_whole =
      value->is_number_integer() || (std::trunc(real) == real && std::abs(real) <= kExact);
  const bool is_beyond = value->is_number_unsigned() &&
                         value->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
  if (is_beyond || (!is_whole && real > kExact)) RefuseField(PathOf(name), "is too large");
  if (!is_whole) RefuseField(PathOf(name), "is not a whole number");
  const int64_t number =
      value->is_number_integer() ? value->get<int64_t>() : static_cast<int64_t>(real);
  if (number < min || number > max) {
    const bool has_max = max != std::numeric_limits<int64_t>::max();
    RefuseField(PathOf(name),
                has_max ? Format("must be {} to {}", min, max) : Format("must be {} or more", min));
  }
  return number;
}

std::optional<std::string> Fields::String(std::string_view name) const {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) RefuseField(PathOf(name), "is not a string");
  return value->get<std::string>();
}

std::string Fields::RequiredString(std::string_view name) const {
  std::optional<std::string> text = String(name);
  if (!text) RefuseField(PathOf(name), "is missing");
  return std::move(*text);
}

std::vector<std::string> Fields::Strings(std::string_view name, size_t max_count) const {
  const Json* const value = Find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) RefuseField(PathOf(name), "is neither a string nor a list of strings");
  if (value->size() > max_count) {
    RefuseField(PathOf(name), Format("has more than {} strings", max_count));
  }
  std::vector<std::string> strings;
  for (const Json& item : *value) {
    if (!item.is_string()) {
      RefuseField(Format("{}[{}]", PathOf(name), strings.size()), "is not a string");
    }
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

std::optional<Fields> Fields::Object(std::string_view name) const {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  return Fields(*value, PathOf(name));
}

const Json* Fields::List(std::string_view name) const {
  const Json* const value = Find(name);
  if (value != nullptr && !value->is_array()) RefuseField(PathOf(name), "is not a list");
  return value;
}

bool Fields::IsOneOf(std::string_view name, std::span<const Json> values) const {
  const Json* const value = Find(name);
  if (value == nullptr) return false;
  const std::optional<double> number = NumberOf(*value);
  return std::ranges::contains(values, number ? Json(*number) : *value);
}

void Fields::Unsupported(std::string_view name, std::initializer_list<Json> neutral,
                         std::string_view advice) const {
  if (!Has(name) || IsOneOf(name, {neutral.begin(), neutral.size()})) return;
  RefuseField(PathOf(name),
              advice.empty() ? std::string("is not supported; leave it out") : std::string(advice),
              "unsupported_parameter");
}

}  // namespace cria::server
