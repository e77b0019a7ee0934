#include "messages/json_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace cria {
namespace {

using Json = nlohmann::ordered_json;

bool HasNumberAsText(const Json& value) {
  return value.is_binary() ||
         (value.is_structured() && std::ranges::any_of(value, HasNumberAsText));
}

}  // namespace

size_t CountValues(const Json& value) {
  size_t count = 1;
  if (value.is_structured()) {
    for (const Json& item : value) count += CountValues(item);
  }
  return count;
}

std::string WriteJson(const Json& value) {
  if (value.is_binary()) return {value.get_binary().begin(), value.get_binary().end()};
  if (!HasNumberAsText(value)) {
    return value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  }
  std::string items;
  for (const auto& [name, item] : value.items()) {
    if (!items.empty()) items += ',';
    if (value.is_object()) items += WriteJson(name) + ':';
    items += WriteJson(item);
  }
  return value.is_object() ? '{' + items + '}' : '[' + items + ']';
}

std::string WriteNumbers(std::span<const float> numbers, char separator) {
  std::string text;
  for (const float number : numbers) {
    if (!text.empty()) text += separator;
    char digits[32];
    const auto written = std::to_chars(std::begin(digits), std::end(digits), number);
    text.append(digits, written.ptr);
  }
  return text;
}

}  // namespace cria
