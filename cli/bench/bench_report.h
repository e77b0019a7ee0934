#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cria::cli {

enum class BenchFormat : uint8_t { kMarkdown, kCsv, kJson };

// Prints the rows of BenchRow on standard output: as a Markdown table with notes below it, as CSV
// without lists and objects, or as a JSON array.
class BenchReport {
 public:
  explicit BenchReport(BenchFormat format) : format_(format) {}

  // Prints the row at once if the format allows it.
  void Add(nlohmann::ordered_json row);
  // Prints the rest; nothing if there were no rows.
  void Finish() const;

 private:
  BenchFormat format_;
  std::vector<nlohmann::ordered_json> rows_;
};

}  // namespace cria::cli
