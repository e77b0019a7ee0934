#include "cli/input/json_document.h"

#include "core/format.h"
#include "jinja/json_reader.h"
#include "jinja/text.h"

namespace cria::cli {

// Enough for every text of this length, except for objects with thousands of fields.
jinja::Limits JsonDocument::LimitsFor(std::string_view text) {
  jinja::Limits limits;
  limits.steps += text.size();
  limits.memory_bytes = 64 * (text.size() + 1024);
  return limits;
}

JsonDocument::JsonDocument(std::string_view text)
    : text_(text), context_(LimitsFor(text), nullptr) {}

Result<jinja::Value> JsonDocument::Read(const std::string& where, std::string_view what) {
  auto value = jinja::ReadJson(context_, text_);
  if (value) return *value;
  if (value.error().code() == ErrorCode::kOutOfRange) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: has too many values to be {}", where, what));
  }
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: is not JSON: {}", where, value.error().message()));
}

std::string JsonDocument::String(const jinja::Value& value) {
  return std::string(jinja::Flat(context_, *value.text));
}

}  // namespace cria::cli
