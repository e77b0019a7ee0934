#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cria/error.h"
#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::cli {

// The value of a JSON text from a file, which may be hostile.
class JsonDocument {
 public:
  // `text` must outlive the document. Its memory and the time that it takes are limited by the
  // length of the text.
  explicit JsonDocument(std::string_view text);

  // Fails with kInvalidFile: "`where`: is not JSON: …", or has too many values to be `what`.
  Result<jinja::Value> Read(const std::string& where, std::string_view what);
  // The bytes of a string of this document.
  std::string String(const jinja::Value& value);

 private:
  static jinja::Limits LimitsFor(std::string_view text);

  std::string_view text_;
  jinja::Context context_;
};

// A value of a document as JSON; numerals that no number keeps are binary values, as WriteJson
// takes them.
nlohmann::ordered_json JsonOfValue(JsonDocument& document, const jinja::Value& value);

}  // namespace cria::cli
