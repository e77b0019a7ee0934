#pragma once

#include <format>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria {

// Takes fields out of one JSON object. Null counts as absent, as it does in Hugging Face's
// libraries. Errors name the file and the field.
class JsonFields {
 public:
  // `where` is the file; `path` names the object in it, "" for the whole file. Keeps a reference to
  // the object.
  JsonFields(const nlohmann::json& object, std::string_view where, std::string_view path = "")
      : object_(object), where_(where), path_(path) {}

  const std::string& where() const { return where_; }
  const std::string& path() const { return path_; }

  // Null if it is absent.
  const nlohmann::json* Find(std::string_view name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  // The object in a field; without fields if there is none.
  JsonFields Object(std::string_view name) const {
    static const nlohmann::json kNothing;
    const nlohmann::json* value = Find(name);
    return JsonFields(value == nullptr ? kNothing : *value, where_, PathOf(name));
  }
  std::string PathOf(std::string_view name) const {
    return path_.empty() ? std::string(name) : std::format("{}.{}", path_, name);
  }
  std::unexpected<Error> Bad(ErrorCode code, std::string_view name, std::string_view what) const {
    return Fail(code, std::format("{}: {} {}.", where_, PathOf(name), what));
  }

  Result<bool> Bool(std::string_view name, bool otherwise) const {
    const nlohmann::json* value = Find(name);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) return Bad(ErrorCode::kInvalidFile, name, "must be true or false");
    return value->get<bool>();
  }
  Result<std::string> String(std::string_view name, std::string_view otherwise = "") const {
    const nlohmann::json* value = Find(name);
    if (value == nullptr) return std::string(otherwise);
    if (!value->is_string()) return Bad(ErrorCode::kInvalidFile, name, "must be a string");
    return value->get<std::string>();
  }
  // A field that must be there.
  Result<const nlohmann::json*> Array(std::string_view name) const {
    const nlohmann::json* value = Find(name);
    if (value == nullptr) return Bad(ErrorCode::kInvalidFile, name, "is missing");
    if (!value->is_array()) return Bad(ErrorCode::kInvalidFile, name, "must be an array");
    return value;
  }

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::string path_;
};

}  // namespace cria
