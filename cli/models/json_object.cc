#include "cli/models/json_object.h"

#include <limits>

#include "jinja/text.h"

namespace cria::cli {

using jinja::Kind;

JsonObject::JsonObject(std::string_view text) : document_(text) {
  const Result<jinja::Value> value = document_.Read("", "an object");
  if (value && value->is(Kind::kDict)) fields_ = value->dict;
}

const jinja::Value* JsonObject::Find(std::string_view name) const {
  return fields_ == nullptr ? nullptr : jinja::Find(fields_->entries, name);
}

std::string JsonObject::Text(std::string_view name) {
  const jinja::Value* const found = Find(name);
  return found != nullptr && found->is(Kind::kString) ? document_.String(*found) : "";
}

std::optional<uint64_t> JsonObject::WholeNumber(std::string_view name) const {
  const jinja::Value* const found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (found->is(Kind::kNumeral)) return std::numeric_limits<uint64_t>::max();
  if (!found->is(Kind::kInt) || found->integer < 0) return std::nullopt;
  return static_cast<uint64_t>(found->integer);
}

std::optional<double> JsonObject::Number(std::string_view name) const {
  const jinja::Value* const found = Find(name);
  if (found == nullptr) return std::nullopt;
  if (found->is(Kind::kFloat)) return found->real;
  if (found->is(Kind::kInt)) return static_cast<double>(found->integer);
  return std::nullopt;
}

}  // namespace cria::cli
