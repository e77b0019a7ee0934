#include "server/api/model_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/format.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

using Duration = ModelStore::Clock::duration;

// A time as long as this is for ever.
constexpr double kMaxSeconds = 1e9;

std::optional<Duration> DurationOf(double seconds) {
  if (std::isnan(seconds)) return std::nullopt;
  if (seconds < 0.0 || seconds > kMaxSeconds) return ModelStore::kForever;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// How many seconds a unit of Go's durations has, of which `text` loses the name.
std::optional<double> TakeUnit(std::string_view& text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}}};
  for (const auto& [name, seconds] : kUnits) {
    if (!text.starts_with(name)) continue;
    text.remove_prefix(name.size());
    return seconds;
  }
  return std::nullopt;
}

// A number of seconds, or numbers with units.
std::optional<double> SecondsOf(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double sum = 0.0;
  while (!text.empty()) {
    // The function below takes "inf", too.
    if (text.front() != '.' && (text.front() < '0' || text.front() > '9')) return std::nullopt;
    double number = 0.0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || number < 0.0) return std::nullopt;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const bool is_alone = text.empty() && sum == 0.0;
    const std::optional<double> unit = is_alone ? 1.0 : TakeUnit(text);
    if (!unit) return std::nullopt;
    sum += number * *unit;
  }
  return is_negative ? -sum : sum;
}

// Tells of the fields of the outermost object.
class ModelRequestReader final : public Json::json_sax_t {
 public:
  ModelRequest Take() { return std::move(read_); }

  bool null() override { return Value(nullptr); }
  bool boolean(bool value) override { return Value(value); }
  bool number_integer(number_integer_t value) override { return Value(value); }
  bool number_unsigned(number_unsigned_t value) override { return Value(value); }
  bool number_float(number_float_t value, const string_t&) override { return Value(value); }
  bool string(string_t& value) override {
    if (depth_ == 1 && (key_ == "model" || (key_ == "name" && !read_.model))) {
      read_.model = value;
    } else if (depth_ == 1 && key_ == "prompt") {
      read_.has_prompt = !value.empty();
    } else if (depth_ == 1 && key_ == "keep_alive") {
      return Value(value);
    }
    return Item();
  }
  bool binary(binary_t&) override { return Item(); }
  bool start_object(std::size_t) override {
    Item();
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name.size() <= kMaxNameBytes ? name : "";
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    Item();
    if (depth_ == 1 && key_ == "messages") read_.has_messages = false;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw RequestError(400, Format("the request's body is not JSON: it is wrong at byte {}", byte));
  }

 private:
  static constexpr size_t kMaxNameBytes = 16;

  bool Value(const Json& value) {
    if (depth_ == 1 && key_ == "keep_alive" && !value.is_null()) {
      read_.keep_alive = ReadKeepAlive(value);
      if (!read_.keep_alive) {
        RefuseField("keep_alive", R"(is neither seconds nor a time such as "5m")");
      }
    }
    return Item();
  }
  // Whether a list has something is seen at its first item.
  bool Item() {
    if (depth_ == 2 && key_ == "messages") read_.has_messages = true;
    return true;
  }

  ModelRequest read_;
  size_t depth_ = 0;
  std::string key_;  // The last one of the outermost object.
};

std::optional<char> HexByte(std::string_view digits) {
  unsigned byte = 0;
  if (digits.size() < 2) return std::nullopt;
  const char* const begin = digits.data();
  const char* const end = begin + 2;
  const auto [stop, error] = std::from_chars(begin, end, byte, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return static_cast<char>(byte);
}

}  // namespace

ModelRequest ReadModelRequest(std::string_view body) {
  if (body.empty()) return {};
  ModelRequestReader reader;
  Json::sax_parse(body, &reader);
  return reader.Take();
}

std::optional<Duration> ReadKeepAlive(const Json& value) {
  if (value.is_number()) return DurationOf(value.get<double>());
  if (!value.is_string()) return std::nullopt;
  const std::optional<double> seconds = SecondsOf(value.get_ref<const std::string&>());
  return seconds ? DurationOf(*seconds) : std::nullopt;
}

std::optional<std::string> QueryValue(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(field.size() + 1, query.size()));
    if (!field.starts_with(name) || field.substr(name.size()).substr(0, 1) != "=") continue;
    field.remove_prefix(name.size() + 1);
    std::string value;
    for (size_t i = 0; i < field.size(); ++i) {
      const std::optional<char> byte =
          field[i] == '%' ? HexByte(field.substr(i + 1)) : std::nullopt;
      if (byte) i += 2;
      value += byte ? *byte : field[i] == '+' ? ' ' : field[i];
    }
    return value;
  }
  return std::nullopt;
}

}  // namespace cria::server
