#include "cli/bench/bench_report.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/bench/speed_test.h"
#include "cli/statistics.h"
#include "cli/terminal/printable.h"
#include "core/format.h"

namespace cria::cli {
namespace {

using Json = nlohmann::ordered_json;

// As in llama-bench, text is aligned left and numbers right.
struct Column {
  std::string title;
  int width;
  bool is_text = false;
};

void PrintLine(const std::vector<Column>& columns, const std::vector<std::string>& cells) {
  std::string line = "|";
  for (size_t i = 0; i < columns.size(); ++i) {
    line += columns[i].is_text ? Format(" {:<{}} |", cells[i], columns[i].width)
                               : Format(" {:>{}} |", cells[i], columns[i].width);
  }
  std::puts(line.c_str());
}

void PrintHeader(const std::vector<Column>& columns) {
  std::vector<std::string> titles, rules;
  for (const Column& column : columns) {
    titles.push_back(column.title);
    rules.push_back(std::string(static_cast<size_t>(column.width - 1), '-') +
                    (column.is_text ? '-' : ':'));
  }
  PrintLine(columns, titles);
  PrintLine(columns, rules);
}

double Number(const Json& row, const char* field) { return row[field].get<double>(); }

std::string Percent(const Json& fraction) {
  return fraction.is_null() ? "" : Format("{:.1f}%", 100.0 * fraction.get<double>());
}

std::string Scaled(double value, double small, double large, const char* small_unit,
                   const char* large_unit) {
  return value < large ? Format("{:.2f} {}", value / small, small_unit)
                       : Format("{:.2f} {}", value / large, large_unit);
}

SpeedTest TestOf(const Json& row) {
  return {.prompt_tokens = row["n_prompt"].get<size_t>(),
          .generated_tokens = row["n_gen"].get<size_t>(),
          .depth_tokens = row["n_depth"].get<size_t>(),
          .num_sequences = row["n_parallel"].get<size_t>()};
}

// "2", or "1/4" if prompts have another number of threads.
std::string Threads(const Json& row) {
  const size_t threads = row["n_threads"].get<size_t>();
  const size_t batch_threads = row["n_threads_batch"].get<size_t>();
  return threads == batch_threads ? Format("{}", threads) : Format("{}/{}", threads, batch_threads);
}

void PrintTableRow(const Json& row, bool is_first) {
  std::vector<Column> columns = {{"model", 30, true}, {"size", 10},   {"params", 10},
                                 {"kv", 4},           {"threads", 7}, {"test", 15},
                                 {"t/s", 18},         {"GB/s", 7},    {"bus", 6}};
  const Json& gb_per_s = row["gb_per_s"];
  std::vector<std::string> cells = {
      Printable(row["model_type"].get<std::string>()),
      Scaled(Number(row, "model_size"), 1 << 20, 1 << 30, "MiB", "GiB"),
      Scaled(Number(row, "model_n_params"), 1e6, 1e9, "M", "B"),
      row["type_k"].get<std::string>(),
      Threads(row),
      TestOf(row).Name(),
      Format("{:.2f} ± {:.2f}", Number(row, "avg_ts"), Number(row, "stddev_ts")),
      gb_per_s.is_null() ? "" : Format("{:.2f}", gb_per_s.get<double>()),
      Percent(row["bus_fraction"])};
  if (!row["products_fraction"].is_null()) {
    columns.push_back({"products", 8});
    cells.push_back(Percent(row["products_fraction"]));
  }
  if (!row["draft_gain"].is_null()) {
    columns.push_back({"drafts accepted", 17});
    cells.push_back(Format("{} of {}", row["accepted_tokens"].get<size_t>(),
                           row["drafted_tokens"].get<size_t>()));
    columns.push_back({"gain", 5});
    cells.push_back(Format("{:.2f}", row["draft_gain"].get<double>()));
  }
  if (is_first) PrintHeader(columns);
  PrintLine(columns, cells);
}

// Prints the notes for the rows with this number of threads.
void PrintThreads(const std::vector<Json>& rows, const std::string& threads) {
  std::vector<double> read, read_one_thread;
  double load_ms = 0.0;
  std::string first_tokens;  // Each prompt's first one.
  for (const Json& row : rows) {
    if (Threads(row) != threads) continue;
    load_ms = Number(row, "load_ms");
    read.push_back(Number(row, "read_gb_per_s"));
    read_one_thread.push_back(Number(row, "read_gb_per_s_one_thread"));
    if (const Json& first_token_ms = row["first_token_ms"]; !first_token_ms.is_null()) {
      first_tokens += Format("{} {} after {:.1f} ms", first_tokens.empty() ? "" : ",",
                             TestOf(row).Name(), first_token_ms.get<double>());
    }
  }
  std::printf("threads %s: loaded in %.1f ms; weights read at %.2f GB/s, by one thread at %.2f\n",
              threads.c_str(), load_ms, Median(read), Median(read_one_thread));
  if (first_tokens.empty()) return;
  std::printf("threads %s: first token of%s\n", threads.c_str(), first_tokens.c_str());
}

// Where drafts come from, and what the gain compares.
void PrintDrafts(const Json& row) {
  if (row["draft_gain"].is_null()) return;
  std::string sources;
  const auto add = [&](const std::string& source) {
    sources += (sources.empty() ? "" : " and ") + source;
  };
  if (const size_t ngram = row["draft_ngram"].get<size_t>(); ngram != 0) {
    add(Format("n-grams of {}", ngram));
  }
  if (row["draft_mtp"].get<bool>()) add("the model's own layer");
  if (const Json& model = row["draft_model_filename"]; !model.is_null()) {
    add(Printable(model.get<std::string>()));
  }
  std::printf("drafts: from %s, of up to %zu tokens; the gain is over the same text without them\n",
              sources.c_str(), row["draft_max"].get<size_t>());
}

// "temperature: 48.3 °C, at the end 51.0 °C", if the system provides it.
void PrintState(const std::vector<Json>& rows, const char* field, const char* unit) {
  const std::string name = field;
  const Json& first = rows.front()[name + "_first"];
  const Json& last = rows.back()[name + "_last"];
  if (first.is_null() || last.is_null()) return;
  std::printf("%.*s: %.1f %s, at the end %.1f %s\n", static_cast<int>(name.find('_')), field,
              first.get<double>(), unit, last.get<double>(), unit);
}

void PrintNotes(const std::vector<Json>& rows) {
  std::printf("\ncpu: %s (%s)\nkernels: %s\n", rows[0]["cpu_info"].get<std::string>().c_str(),
              rows[0]["isa"].get<std::string>().c_str(),
              rows[0]["kernels"].get<std::string>().c_str());
  std::vector<std::string> seen;
  for (const Json& row : rows) {
    if (std::ranges::contains(seen, Threads(row))) continue;
    seen.push_back(Threads(row));
    PrintThreads(rows, Threads(row));
  }
  PrintDrafts(rows[0]);
  PrintState(rows, "temperature_celsius", "°C");
  PrintState(rows, "frequency_mhz", "MHz");
}

// The time of each step: a line for each kind of operator, a column for each test.
void PrintProfiles(const std::vector<Json>& rows) {
  std::vector<Column> columns = {{"operator", 12, true}};
  for (const Json& row : rows) {
    std::string title = Format("{}, t{}", TestOf(row).Name(), Threads(row));
    const int width = static_cast<int>(title.size());
    columns.push_back({std::move(title), width});
  }
  std::puts("");
  PrintHeader(columns);
  const auto print = [&](const std::string& name, const auto& fraction) {
    std::vector<std::string> cells = {name};
    for (const Json& row : rows) cells.push_back(Percent(fraction(row)));
    PrintLine(columns, cells);
  };
  for (const auto& item : rows[0]["profile"].items()) {
    print(item.key(), [&](const Json& row) { return row["profile"][item.key()]; });
  }
  print("products", [](const Json& row) {
    double sum = 0.0;
    for (const auto& item : row["profile"].items()) {
      const std::string& name = item.key();
      if (name.ends_with("_proj") || name == "lm_head") sum += item.value().get<double>();
    }
    return Json(sum);
  });
  print("sum", [](const Json& row) { return row["profile_sum"]; });
}

// Every field in quotes, as llama-bench does.
void PrintCsvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "\"" : ",\"";
    for (const char character : field) line.append(character == '"' ? 2 : 1, character);
    line += '"';
  }
  std::puts(line.c_str());
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void PrintCsvRow(const Json& row, bool is_first) {
  std::vector<std::string> names, values;
  for (const auto& item : row.items()) {
    const Json& value = item.value();
    if (value.is_structured()) continue;
    names.push_back(item.key());
    values.push_back(value.is_null()     ? ""
                     : value.is_string() ? value.get<std::string>()
                                         : Dump(value, -1));
  }
  if (is_first) PrintCsvLine(names);
  PrintCsvLine(values);
}

}  // namespace

void BenchReport::Add(nlohmann::ordered_json row) {
  if (format_ == BenchFormat::kMarkdown) PrintTableRow(row, rows_.empty());
  if (format_ == BenchFormat::kCsv) PrintCsvRow(row, rows_.empty());
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

void BenchReport::Finish() const {
  if (rows_.empty()) return;
  if (format_ == BenchFormat::kMarkdown) {
    PrintNotes(rows_);
    if (rows_[0].contains("profile")) PrintProfiles(rows_);
  } else if (format_ == BenchFormat::kJson) {
    std::puts(Dump(Json(rows_), 2).c_str());
  }
}

}  // namespace cria::cli
