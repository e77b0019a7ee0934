#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cria::cli {

enum class BenchFormat : uint8_t { kMarkdown, kCsv, kJson };

// Prints the rows that BenchRow makes on standard output: a table of Markdown with notes below it,
// CSV without what is a list or an object, or an array of JSON.
class BenchReport {
 public:
  explicit BenchReport(BenchFormat format) : format_(format) {}

  // Prints the row at once, where the format allows that.
  void Add(nlohmann::ordered_json row);
  // Prints the rest. Nothing, if there were no rows.
  void Finish() const;

 private:
  BenchFormat format_;
  std::vector<nlohmann::ordered_json> rows_;
};

}  // namespace cria::cli
