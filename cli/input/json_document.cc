#include "cli/input/json_document.h"

#include <nlohmann/json.hpp>

#include "core/format.h"
#include "jinja/json_reader.h"
#include "jinja/text.h"

namespace cria::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

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

// The values of a document are not nested deeply.
nlohmann::ordered_json JsonOfValue(JsonDocument& document, const jinja::Value& value) {
  using jinja::Kind;
  switch (value.kind) {
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer;
    case Kind::kNumeral:
      // As the reader of requests keeps it, too.
      return Json::binary({value.digits->begin(), value.digits->end()});
    case Kind::kFloat:
      return value.real;
    case Kind::kString:
      return document.String(value);
    case Kind::kList: {
      Json list = Json::array();
      for (const jinja::Value& item : value.list->items)
        list.push_back(JsonOfValue(document, item));
      return list;
    }
    case Kind::kDict: {
      Json object = Json::object();
      // The names in an object differ, so there is no need to look for each.
      for (const auto& [name, item] : value.dict->entries) {
        object.get_ref<Json::object_t&>().push_back(
            {document.String(name), JsonOfValue(document, item)});
      }
      return object;
    }
    default:
      return nullptr;
  }
}

}  // namespace cria::cli
