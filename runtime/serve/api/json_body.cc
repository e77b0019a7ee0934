#include "serve/api/json_body.h"

#include <vector>

#include "core/format.h"
#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

// Throws when a text exceeds the bounds. It sees the text before the values are made: a callback of
// the library's parser would make it look through a whole list after each object in it.
class BoundsCheck : public Json::json_sax_t {
 public:
  explicit BoundsCheck(const std::string& what) : what_(what) {}

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(std::size_t) override { return Open(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t&) override {
    if (++keys_.back() > kMaxJsonKeys) {
      Refuse(Format("has an object with more than {} fields", kMaxJsonKeys));
    }
    return true;
  }
  // The parser that makes the values says what is wrong.
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool Count() {
    if (++num_values_ > kMaxJsonValues) Refuse(Format("has more than {} values", kMaxJsonValues));
    return true;
  }
  bool Open() {
    if (keys_.size() >= kMaxJsonDepth) {
      Refuse(Format("is nested more than {} levels deep", kMaxJsonDepth));
    }
    keys_.push_back(0);
    return Count();
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }
  [[noreturn]] void Refuse(const std::string& problem) const {
    throw RequestError(400, what_ + " " + problem);
  }

  const std::string& what_;
  std::vector<size_t> keys_;  // Of each open object or list.
  size_t num_values_ = 0;
};

}  // namespace

Json ReadJsonText(std::string_view text, const std::string& what) {
  try {
    BoundsCheck check(what);
    Json::sax_parse(text, &check);
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw RequestError(400, Format("{} is not JSON: it is wrong at byte {}", what, error.byte));
  } catch (const Json::exception&) {
    // The only other error is a number beyond the range of double.
    throw RequestError(400, what + " has a number that is too large");
  }
}

Json ReadBody(std::string_view body) {
  if (body.empty()) throw RequestError(400, "the request has no body: it must be a JSON object");
  Json object = ReadJsonText(body, "the request's body");
  if (!object.is_object()) throw RequestError(400, "the request's body is not a JSON object");
  return object;
}

std::string Written(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cria::serve
