// Tests what cria bench prints for rows with all fields, some of which not every machine provides.

#include "cli/bench/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cria::cli {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Json = nlohmann::ordered_json;

Json Row(int prompt_tokens, int generated_tokens) {
  return {{"cpu_info", "A \"board\", with dots"},
          {"isa", "neon dotprod"},
          {"kernels", "NEON_DOTPROD"},
          {"model_type", "Llama 3.2 1B qb4w"},
          {"model_size", 3'221'225'472},
          {"model_n_params", 1'235'814'400},
          {"n_threads", 4},
          {"n_threads_batch", 3},
          {"type_k", "int8"},
          {"n_prompt", prompt_tokens},
          {"n_gen", generated_tokens},
          {"n_depth", 2048},
          {"n_parallel", 1},
          {"avg_ts", 12.345},
          {"stddev_ts", 0.5},
          {"load_ms", 98.76},
          {"first_token_ms", generated_tokens == 0 ? Json(81.23) : Json(nullptr)},
          {"gb_per_s", nullptr},
          {"read_gb_per_s", 11.25},
          {"read_gb_per_s_one_thread", 7.5},
          {"bus_fraction", 0.8765},
          {"products_fraction", 0.95},
          {"draft_ngram", 3},
          {"draft_mtp", false},
          {"draft_model_filename", nullptr},
          {"draft_max", 8},
          {"drafted_tokens", nullptr},
          {"accepted_tokens", nullptr},
          {"draft_gain", nullptr},
          {"temperature_celsius_first", 48.3},
          {"frequency_mhz_first", 2400.0},
          {"temperature_celsius_last", 71.0},
          {"frequency_mhz_last", 1800.0},
          {"samples_ns", {1, 2}}};
}

std::string Printed(BenchFormat format, const std::vector<Json>& rows) {
  testing::internal::CaptureStdout();
  BenchReport report(format);
  for (const Json& row : rows) report.Add(row);
  report.Finish();
  return testing::internal::GetCapturedStdout();
}

TEST(BenchReport, MarkdownEndsWithTheMachine) {
  EXPECT_EQ(
      Printed(BenchFormat::kMarkdown, {Row(512, 0), Row(0, 128)}),
      R"(| model                          |       size |     params |   kv | threads |            test |                t/s |    GB/s |    bus | products |
| ------------------------------ | ---------: | ---------: | ---: | ------: | --------------: | -----------------: | ------: | -----: | -------: |
| Llama 3.2 1B qb4w              |   3.00 GiB |     1.24 B | int8 |     4/3 |   pp512 @ d2048 |       12.35 ± 0.50 |         |  87.6% |    95.0% |
| Llama 3.2 1B qb4w              |   3.00 GiB |     1.24 B | int8 |     4/3 |   tg128 @ d2048 |       12.35 ± 0.50 |         |  87.6% |    95.0% |

cpu: A "board", with dots (neon dotprod)
kernels: NEON_DOTPROD
threads 4/3: loaded in 98.8 ms; weights read at 11.25 GB/s, by one thread at 7.50
threads 4/3: first token of pp512 @ d2048 after 81.2 ms
temperature: 48.3 °C, at the end 71.0 °C
frequency: 2400.0 MHz, at the end 1800.0 MHz
)");
}

TEST(BenchReport, EveryPromptHasItsFirstToken) {
  EXPECT_THAT(Printed(BenchFormat::kMarkdown, {Row(20, 0), Row(512, 0), Row(0, 128)}),
              HasSubstr("\nthreads 4/3: first token of pp20 @ d2048 after 81.2 ms, pp512 @ d2048 "
                        "after 81.2 ms\n"));
  EXPECT_THAT(Printed(BenchFormat::kMarkdown, {Row(0, 128)}), Not(HasSubstr("first token")));
}

TEST(BenchReport, DraftsHaveColumnsAndASource) {
  Json row = Row(0, 128);
  row["drafted_tokens"] = 640;
  row["accepted_tokens"] = 410;
  row["draft_gain"] = 1.7349;
  EXPECT_THAT(Printed(BenchFormat::kMarkdown, {row}),
              AllOf(HasSubstr("|    95.0% |        410 of 640 |  1.73 |\n"),
                    HasSubstr("\ndrafts: from n-grams of 3, of up to 8 tokens; the gain is ")));
  row["draft_mtp"] = true;
  EXPECT_THAT(
      Printed(BenchFormat::kMarkdown, {row}),
      HasSubstr("\ndrafts: from n-grams of 3 and the model's own layer, of up to 8 tokens; "));
  row["draft_mtp"] = false;
  row["draft_model_filename"] = "small.cria";
  EXPECT_THAT(Printed(BenchFormat::kMarkdown, {row}),
              HasSubstr("\ndrafts: from n-grams of 3 and small.cria, of up to 8 tokens; "));
}

TEST(BenchReport, WhatTheSystemDoesNotTellIsNotPrinted) {
  Json row = Row(512, 0);
  row["temperature_celsius_last"] = nullptr;
  EXPECT_THAT(Printed(BenchFormat::kMarkdown, {row}),
              AllOf(Not(HasSubstr("temperature")), EndsWith("at the end 1800.0 MHz\n")));
}

TEST(BenchReport, CsvQuotesEverythingAndLeavesListsOut) {
  const std::string csv = Printed(BenchFormat::kCsv, {Row(512, 0)});
  EXPECT_THAT(csv, AllOf(testing::StartsWith("\"cpu_info\",\"isa\","),
                         HasSubstr("\n\"A \"\"board\"\", with dots\",\"neon dotprod\","),
                         HasSubstr(",\"\",\"11.25\","), EndsWith(",\"1800.0\"\n"),
                         Not(HasSubstr("samples_ns"))));
}

TEST(BenchReport, JsonIsAnArrayOfTheRows) {
  EXPECT_EQ(Json::parse(Printed(BenchFormat::kJson, {Row(512, 0), Row(0, 128)})),
            Json::array({Row(512, 0), Row(0, 128)}));
}

TEST(BenchReport, NoRowsAreNoOutput) {
  for (const auto format : {BenchFormat::kMarkdown, BenchFormat::kCsv, BenchFormat::kJson}) {
    EXPECT_THAT(Printed(format, {}), IsEmpty());
  }
}

}  // namespace
}  // namespace cria::cli
