#include "server/requests/json_body.h"

#include <utility>
#include <vector>

#include "core/format.h"
#include "messages/json_text.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

// Makes the values of a text, and throws when it exceeds the bounds or is not JSON. A number is
// only a double if that is written as the text has it; otherwise its text is kept, as binary bytes,
// which no text of JSON has.
class ValueReader : public Json::json_sax_t {
 public:
  explicit ValueReader(const std::string& what) : what_(what) {}

  Json Take() { return std::move(root_); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t& written) override {
    Json number = value;
    if (number.dump() == written) return Add(std::move(number));
    return Add(Json::binary(Json::binary_t::container_type(written.begin(), written.end())));
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (++open_.back().num_keys > kMaxJsonKeys) {
      Refuse(Format("has an object with more than {} fields", kMaxJsonKeys));
    }
    Count(kCountOfLargeValue);
    field_ = &(*open_.back().value)[std::move(name)];
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberTooLarge = 406;
    if (error.id == kNumberTooLarge) Refuse("has a number that is too large");
    Refuse(Format("is not JSON: it is wrong at byte {}", byte));
  }

 private:
  struct OpenValue {
    Json* value;
    size_t num_keys = 0;
  };

  bool Add(Json value) {
    const bool is_large = value.is_string() || value.is_structured() || value.is_binary();
    Count(is_large ? kCountOfLargeValue : 1);
    last_ = open_.empty() ? &root_ : field_;
    if (!open_.empty() && open_.back().value->is_array()) {
      open_.back().value->push_back(nullptr);
      last_ = &open_.back().value->back();
    }
    *last_ = std::move(value);
    return true;
  }
  void Count(size_t count) {
    count_ += count;
    if (count_ > kMaxJsonValues) {
      Refuse(Format("has more than {} values, of which texts, lists, objects and names count as {}",
                    kMaxJsonValues, kCountOfLargeValue));
    }
  }
  bool Open(Json value) {
    if (open_.size() >= kMaxJsonDepth) {
      Refuse(Format("is nested more than {} levels deep", kMaxJsonDepth));
    }
    Add(std::move(value));
    open_.push_back({last_});
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  [[noreturn]] void Refuse(const std::string& problem) const {
    throw RequestError(400, what_ + " " + problem);
  }

  const std::string& what_;
  Json root_;
  std::vector<OpenValue> open_;
  Json* field_ = nullptr;  // Where the next value of the innermost open object goes.
  Json* last_ = nullptr;   // The newest value.
  size_t count_ = 0;       // See kMaxJsonValues.
};

std::string TextOfNumber(const Json& number) {
  const Json::binary_t& bytes = number.get_binary();
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Json ReadJsonText(std::string_view text, const std::string& what) {
  ValueReader reader(what);
  Json::sax_parse(text, &reader);
  return reader.Take();
}

std::optional<Json> TryReadJson(std::string_view text) {
  try {
    return ReadJsonText(text, "a text");
  } catch (const RequestError&) {
    return std::nullopt;
  }
}

Json ReadBody(std::string_view body) {
  if (body.empty()) throw RequestError(400, "the request has no body: it must be a JSON object");
  Json object = ReadJsonText(body, "the request's body");
  if (!object.is_object()) throw RequestError(400, "the request's body is not a JSON object");
  return object;
}

std::optional<double> NumberOf(const Json& value) {
  if (value.is_binary()) return Json::parse(TextOfNumber(value)).get<double>();
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string Written(const Json& value) { return WriteJson(value); }

void AppendEscaped(std::string_view text, std::string& json) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (c == '\n') {
      json += "\\n";
    } else if (c == '\r') {
      json += "\\r";
    } else if (c == '\t') {
      json += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += Format("\\u00{}{}", c >> 4, "0123456789abcdef"[c & 15]);
    } else {
      json += c;
    }
  }
}

}  // namespace cria::server
