#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/api/response.h"

namespace cria::server {

// Writes a JSON value as text, piece by piece, so that a large answer never is in memory as a
// whole: what is more than kHeldBytes is sent while the rest is made. Only for threads of the
// queue, because sending waits for the client.
class TextAnswer {
 public:
  static constexpr size_t kHeldBytes = size_t{16} << 10;

  explicit TextAnswer(Response& response) : response_(response) {}

  // The text of an object without its braces.
  static std::string Members(const Json& object);

  // A piece of the JSON text.
  void Add(std::string_view json);
  // Characters of a string, without its quotation marks. Bytes that are not UTF-8 are replaced; a
  // character may be divided between two calls.
  void AddCharacters(std::string_view text);
  // At the end of each string to which there were characters added.
  void EndString();
  // Sends what is left.
  void Finish();

  // The client takes no more of it.
  bool is_gone() const { return response_.is_gone(); }

 private:
  Response& response_;
  std::string held_;
  std::string character_;  // The beginning of one.
  bool has_begun_ = false;
};

}  // namespace cria::server
