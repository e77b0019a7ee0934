// What cria-convert does with the codes of a GGUF file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/convert/cria_convert_program.h"
#include "support/block_gguf.h"
#include "support/family_checkpoint.h"
#include "support/files.h"
#include "support/run_program.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::RunResult;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class KeepProgram : public CriaConvertProgram {
 protected:
  void SetUp() override {
    CriaConvertProgram::SetUp();
    reference::ReferenceModel model = support::MakeModel(support::SpecGqa());
    support::WriteBlockGguf(gguf_, [](const std::string&) { return "Q5_1"; }, model);
  }

  std::filesystem::path gguf_ = folder_ / "model.gguf";
};

TEST_F(KeepProgram, CodesAreKeptUnlessOthersAreAskedFor) {
  const auto kept = ContainsRegex("\nqkv_proj +Q5_1 ");
  const auto rounded = ContainsRegex("\nqkv_proj +qb4w ");
  const RunResult plain = Convert({gguf_, "-o", output_});
  EXPECT_EQ(plain.exit_code, 0) << plain.error;
  EXPECT_THAT(plain.output, AllOf(kept, ContainsRegex("\nembed_tokens +Q5_1 "),
                                  HasSubstr("\nverified against f32 at ")));
  EXPECT_THAT(Convert({gguf_, "-o", output_, "--weights", "keep"}).output, kept);
  EXPECT_THAT(Convert({gguf_, "-o", output_, "--fast"}).output, rounded);
  EXPECT_THAT(Convert({gguf_, "-o", output_, "--weights", "int4", "--fast"}).output, rounded);
  EXPECT_THAT(Convert({gguf_, "-o", output_, "--head", "int8"}).output,
              AllOf(kept, ContainsRegex("\nlm_head +qc8w ")));
}

TEST_F(KeepProgram, CodesOfMxfp4AreKeptToo) {
  support::WriteFamilyDirectory(support::FamilyNamed("GptOssMxfp4"), folder_ / "gpt-oss");
  const RunResult plain = Convert({folder_ / "gpt-oss", "-o", output_});
  EXPECT_EQ(plain.exit_code, 0) << plain.error;
  EXPECT_THAT(plain.output, AllOf(ContainsRegex("\nqkv_proj +qc8w "),
                                  ContainsRegex("\nexperts_gate_up_proj +MXFP4 "),
                                  HasSubstr("\nverified against f32 at ")));
  EXPECT_THAT(Convert({folder_ / "gpt-oss", "-o", output_, "--fast"}).output,
              ContainsRegex("\nexperts_gate_up_proj +qb4w "));
}

TEST_F(KeepProgram, APlanIsOfTheFileThatWouldBeWritten) {
  const RunResult kept = Convert({"plan", gguf_, "-c", "64"});
  const RunResult int4 = Convert({"plan", gguf_, "-c", "64", "--weights", "int4"});
  EXPECT_EQ(kept.exit_code, 0) << kept.error;
  EXPECT_EQ(int4.exit_code, 0) << int4.error;
  EXPECT_NE(kept.output, int4.output);
}

TEST_F(KeepProgram, WhatCannotBeKeptIsRefused) {
  EXPECT_THAT(Convert({checkpoint_, "-o", output_, "--weights", "keep"}).error,
              HasSubstr("there are no codes to keep"));
  EXPECT_THAT(Convert({gguf_, "-o", output_, "--weights", "keep", "--fast"}).error,
              HasSubstr("--fast rounds weights, which --weights keep leaves as they are"));
  EXPECT_THAT(Convert({gguf_, "-o", output_, "--weights", "keep", "--calibrate", gguf_}).error,
              HasSubstr("there is nothing to calibrate"));
  EXPECT_THAT(Convert({gguf_, "-o", output_, "--weights", "keep", "--target-bits", "5"}).error,
              HasSubstr("a target chooses other codes"));
  EXPECT_THAT(support::FileNames(output_.parent_path()), testing::IsEmpty());
}

}  // namespace
}  // namespace cria
