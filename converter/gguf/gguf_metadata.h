#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cria/error.h"

namespace cria {

// Many strings in two blocks of memory.
class StringList {
 public:
  void Add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<size_t> ends_;
};

// An array that the converter does not use; it was skipped.
struct SkippedArray {};

// Integers of all widths are read into one type, and so are f32 and f64.
using GgufValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<bool>, StringList, SkippedArray>;

// The keys and values at the beginning of a GGUF file. Errors name the file and the key.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string where) : where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  // False if the key already exists.
  bool Add(std::string key, GgufValue value);

  bool Has(std::string_view key) const { return values_.contains(key); }
  // Null if the key is absent or its value has another type.
  template <typename T>
  const T* Find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : std::get_if<T>(&found->second);
  }

  // If the key is absent, returns `otherwise`; without `otherwise`, an absent key is an error.
  Result<uint32_t> Integer(std::string_view key, std::optional<uint32_t> otherwise = {}) const;
  Result<float> Number(std::string_view key, std::optional<float> otherwise = {}) const;
  Result<bool> Bool(std::string_view key, bool otherwise) const;
  Result<std::string> String(std::string_view key, std::optional<std::string> otherwise = {}) const;
  // The key must exist; T is an array type.
  template <typename T>
  Result<const T*> Array(std::string_view key) const {
    if (const T* array = Find<T>(key)) return array;
    return WrongKind(key, "an array of the right type");
  }

  std::unexpected<Error> Bad(std::string_view key, std::string_view what,
                             ErrorCode code = ErrorCode::kInvalidFile) const;

 private:
  std::unexpected<Error> WrongKind(std::string_view key, std::string_view wanted) const;

  std::string where_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace cria
