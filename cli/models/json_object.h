#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/input/json_document.h"

namespace cria::cli {

// The fields of an object in JSON that Cria wrote, by the reader that the program has anyway.
class JsonObject {
 public:
  // `text` must outlive the object. What is not an object has no fields.
  explicit JsonObject(std::string_view text);

  bool is_object() const { return fields_ != nullptr; }
  // Empty if there is no such text.
  std::string Text(std::string_view name);
  // Absent if there is no such number that is not negative; the largest one in place of larger
  // ones.
  std::optional<uint64_t> WholeNumber(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;

 private:
  const jinja::Value* Find(std::string_view name) const;

  JsonDocument document_;
  const jinja::Dict* fields_ = nullptr;
};

}  // namespace cria::cli
