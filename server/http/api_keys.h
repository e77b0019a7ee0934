#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"

namespace cria::server {

// Compares in a time that depends on the length of `given` alone.
bool EqualsInConstantTime(std::string_view given, std::string_view secret);

// The keys of which each request must have one.
class ApiKeys {
 public:
  ApiKeys() = default;
  explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {}
  // Reads a file with a key on each line. Empty lines and those that begin with '#' are skipped.
  // Fails if there is no key, or one with a character that no header can hold.
  static Result<ApiKeys> Read(const std::string& path);

  // No key is needed.
  bool empty() const { return keys_.empty(); }
  // The time of this does not tell how much of a key is right, or which.
  bool Have(std::string_view given) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace cria::server
