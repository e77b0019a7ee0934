#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cria/error.h"
#include "grammar/schema_index.h"

namespace cria::grammar {

// What is wrong with a schema, and how much work it has made. The first error stays: functions go
// on after one with any results, and loops check failed().
class SchemaReport {
 public:
  explicit SchemaReport(const SchemaIndex& index) : index_(index) {}

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }

  // "PLACE has 'KEYWORD', which PROBLEM".
  void FailKeyword(ErrorCode code, const jinja::Dict* schema, std::string_view keyword,
                   std::string_view problem);
  // "PLACE PROBLEM".
  void Fail(ErrorCode code, const jinja::Dict* schema, std::string_view problem);
  void Fail(const Error& error);

  // Counts steps of work on the schema; fails at a limit, so that hostile schemas end soon.
  void Charge(const jinja::Dict* schema, size_t steps);

  // Counts memory that is in use at the same time; fails at a limit.
  void Hold(const jinja::Dict* schema, size_t bytes);
  void Release(size_t bytes) { held_bytes_ -= bytes; }

 private:
  static constexpr size_t kMaxSteps = 150'000;
  // A part of kMaxReadingBytes.
  static constexpr size_t kMaxHeldBytes = size_t{3} << 19;

  void FailCombinations(const jinja::Dict* schema);

  const SchemaIndex& index_;
  std::optional<Error> error_;
  size_t steps_ = 0;
  size_t held_bytes_ = 0;
};

// Holds so many bytes as long as it exists.
class HeldBytes {
 public:
  HeldBytes(SchemaReport& report, const jinja::Dict* schema, size_t bytes)
      : report_(report), bytes_(bytes) {
    report_.Hold(schema, bytes);
  }
  ~HeldBytes() { report_.Release(bytes_); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

 private:
  SchemaReport& report_;
  const size_t bytes_;
};

}  // namespace cria::grammar
