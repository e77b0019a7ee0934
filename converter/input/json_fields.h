#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria {

// Reads fields of one JSON object. Null counts as absent, as in Hugging Face's libraries. Errors
// name the file and the field.
class JsonFields {
 public:
  // `where` is the file; `path` is the object's name in it, "" for the top-level object. Keeps a
  // reference to the object.
  JsonFields(const nlohmann::json& object, std::string_view where, std::string_view path = "")
      : object_(object), where_(where), path_(path) {}

  const nlohmann::json& object() const { return object_; }
  const std::string& where() const { return where_; }
  const std::string& path() const { return path_; }

  // Null if the field is absent.
  const nlohmann::json* Find(std::string_view name) const;
  // The object in a field; an object without fields if the field is absent.
  JsonFields Object(std::string_view name) const;
  std::string PathOf(std::string_view name) const;
  std::unexpected<Error> Bad(ErrorCode code, std::string_view name, std::string_view what) const;

  // If the field is absent, returns `otherwise`; without `otherwise`, an absent field is an error.
  Result<uint32_t> Integer(std::string_view name, std::optional<uint32_t> otherwise = {}) const;
  Result<float> Number(std::string_view name, std::optional<float> otherwise = {}) const;
  Result<bool> Bool(std::string_view name, bool otherwise) const;
  Result<std::string> String(std::string_view name, std::string_view otherwise = "") const;
  Result<const nlohmann::json*> Array(std::string_view name) const;

  // The value as text for an error sentence.
  static std::string Text(const nlohmann::json& value);

 private:
  std::unexpected<Error> WrongType(std::string_view name, const nlohmann::json& value,
                                   std::string_view wanted) const;
  std::unexpected<Error> Missing(std::string_view name) const;

  const nlohmann::json& object_;
  std::string where_;
  std::string path_;
};

}  // namespace cria
