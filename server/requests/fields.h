#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/requests/json_body.h"

namespace cria::server {

// Reads the fields of a request's object. A field that is missing or null has no value. All
// functions throw RequestError, with the field's path, for a value of the wrong type or range.
//
// Assign what they return to a struct's members if the struct has others that are initialized by
// {}: if an initializer throws, GCC 14 destroys members of these twice.
class Fields {
 public:
  // `path` names the object in messages: "", "options", "messages[2]". `object` must outlive this.
  explicit Fields(const Json& object, std::string path = "");

  const Json* Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // "messages[2].role"
  std::string PathOf(std::string_view name) const;

  std::optional<bool> Bool(std::string_view name) const;
  std::optional<double> Number(std::string_view name, double min, double max) const;
  std::optional<int64_t> Integer(std::string_view name, int64_t min,
                                 int64_t max = std::numeric_limits<int64_t>::max()) const;
  std::optional<std::string> String(std::string_view name) const;
  // A string that must be there.
  std::string RequiredString(std::string_view name) const;
  // A string, or a list of strings; empty if it is missing.
  std::vector<std::string> Strings(std::string_view name, size_t max_count) const;
  // An object; throws if it is something else.
  std::optional<Fields> Object(std::string_view name) const;
  const Json* List(std::string_view name) const;

  // Whether the field has one of these values.
  bool IsOneOf(std::string_view name, std::span<const Json> values) const;
  // Refuses a field that would change the answer, unless it has a value that changes nothing.
  void Unsupported(std::string_view name, std::initializer_list<Json> neutral = {},
                   std::string_view advice = "") const;

  const Json& json() const { return *object_; }
  const std::string& path() const { return path_; }

 private:
  const Json* object_;
  std::string path_;
};

}  // namespace cria::server
