// Runs cria-convert like a user: what it prints to which output, its exit codes and its files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/convert/cria_convert_program.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using nlohmann::json;
using support::RunOptions;
using support::RunProgram;
using support::RunResult;
using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Path = std::filesystem::path;

TEST_F(CriaConvertProgram, PrintsTheTableAndPlainLinesOfProgress) {
  const RunResult result = Convert({checkpoint_, "--fast", "-o", output_});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, StartsWith("tensors "));
  for (const char* row : {"\nembed_tokens ", "\nqkv_proj ", "\ndown_proj ", "\nlm_head "}) {
    EXPECT_THAT(result.output, HasSubstr(row));
  }
  EXPECT_THAT(result.output, HasSubstr("\n" + output_.string() + ": checkpoint, "));
  EXPECT_THAT(result.output, ContainsRegex("digest [0-9a-f]{32}\n"));
  EXPECT_THAT(result.error, HasSubstr("converting: 100% ("));
  for (const std::string& text : {result.output, result.error}) {
    EXPECT_THAT(text, Not(HasSubstr("\r")));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  }
  EXPECT_THAT(support::FileNames(output_.parent_path()), ElementsAre("model.cria"));
}

TEST_F(CriaConvertProgram, VerifiesSmallModelsUnlessToldNotTo) {
  const auto verified = HasSubstr("\nverified against f32 at ");
  const RunResult int8 = Convert({checkpoint_, "--fast", "-o", output_, "--weights", "int8"});
  EXPECT_EQ(int8.exit_code, 0) << int8.error;
  EXPECT_THAT(int8.output, verified);
  EXPECT_THAT(int8.output, Not(HasSubstr("at most 0,")));
  EXPECT_THAT(support::FileNames(output_.parent_path()), ElementsAre("model.cria"));
  EXPECT_THAT(Convert({checkpoint_, "--fast", "-o", output_, "--no-verify"}).output, Not(verified));
  // A model in f32 has nothing to be compared with.
  for (const std::vector<std::string>& asked : {std::vector<std::string>{}, {"--verify"}}) {
    std::vector<std::string> arguments = {checkpoint_, "--fast", "-o", output_, "--weights", "f32"};
    arguments.insert(arguments.end(), asked.begin(), asked.end());
    EXPECT_THAT(
        Convert(arguments).output,
        ContainsRegex("\nverified: its predictions are finite numbers at [0-9]+ positions"));
  }
  EXPECT_THAT(
      Convert({checkpoint_, "--fast", "-o", output_, "--weights", "f32", "--embedding", "int8"})
          .output,
      verified);
}

TEST_F(CriaConvertProgram, AVocabularyWithoutTheTextsIsNoErrorUnlessAskedFor) {
  std::filesystem::remove(checkpoint_ / "tokenizer_config.json");
  std::ofstream(checkpoint_ / "tokenizer.json")
      // Its only token is the byte 0.
      << R"({"model": {"type": "BPE", "vocab": {"\u0100": 0}, "merges": []},
             "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})";
  const RunResult result = Convert({checkpoint_, "--fast", "-o", output_, "--weights", "int8"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("its vocabulary has no tokens"));
  const RunResult asked =
      Convert({checkpoint_, "--fast", "-o", output_, "--weights", "int8", "--verify"});
  EXPECT_EQ(asked.exit_code, 1);
  EXPECT_THAT(asked.error, HasSubstr("its vocabulary has no tokens"));

  const RunResult not_calibrated = Convert({checkpoint_, "-o", output_});
  EXPECT_EQ(not_calibrated.exit_code, 0) << not_calibrated.error;
  EXPECT_THAT(not_calibrated.output,
              HasSubstr("the weights are rounded, because they cannot be chosen for a text: "));
  const RunResult planned = Convert({checkpoint_, "--target-bits", "6", "--plan-only"});
  EXPECT_EQ(planned.exit_code, 0) << planned.error;
  EXPECT_THAT(planned.output, HasSubstr("It is estimated from the weights;"));
  const std::string resume = folder_ / "resume";
  for (const std::vector<std::string>& calibrates :
       {std::vector<std::string>{"--resume", resume}, {"--rotate", "always"}}) {
    std::vector<std::string> arguments = {checkpoint_, "-o", output_};
    arguments.insert(arguments.end(), calibrates.begin(), calibrates.end());
    EXPECT_NE(Convert(arguments).exit_code, 0) << calibrates.front();
  }
}

TEST_F(CriaConvertProgram, NamesTheModelAfterTheCheckpoint) {
  RunOptions options;
  options.working_directory = folder_ / "out";
  for (const std::string name : {"../checkpoint", "../checkpoint/", "../checkpoint/."}) {
    EXPECT_EQ(Convert({name}, options).exit_code, 0) << name;
    EXPECT_THAT(support::FileNames(folder_ / "out"), ElementsAre("checkpoint.cria")) << name;
    std::filesystem::remove(folder_ / "out" / "checkpoint.cria");
  }
}

TEST_F(CriaConvertProgram, AVocabularyAloneIsForTokenizing) {
  std::filesystem::remove(checkpoint_ / "model.safetensors");
  const RunResult result = Convert({checkpoint_, "--vocab-only", "-o", output_});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("a vocabulary of 300 tokens"));
  const RunResult tokens =
      RunProgram({support::kCriaProgram, "tokenize", "-m", output_, "-p", "the"});
  EXPECT_EQ(tokens.exit_code, 0) << tokens.error;
  EXPECT_THAT(tokens.output, HasSubstr("<|begin_of_text|>"));
  for (const char* command : {"info", "plan", "run"}) {
    const RunResult refused =
        RunProgram({support::kCriaProgram, command, "-m", output_}, {.input = "a"});
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_THAT(refused.error, HasSubstr("has only a tokenizer")) << command;
    EXPECT_EQ(std::ranges::count(refused.error, '\n'), 1) << refused.error;
  }
}

TEST_F(CriaConvertProgram, NamesTheModelOfAFileAfterIt) {
  support::WriteGguf(support::MakeModel(support::SpecGqa()), support::StorageType::kF32,
                     folder_ / "a-model.gguf");
  RunOptions options;
  options.working_directory = folder_ / "out";
  EXPECT_EQ(Convert({"../a-model.gguf"}, options).exit_code, 0);
  EXPECT_THAT(support::FileNames(folder_ / "out"), ElementsAre("a-model.cria"));
  std::filesystem::remove(folder_ / "out" / "a-model.cria");
  const RunResult plan = Convert({"plan", folder_ / "a-model.gguf"});
  EXPECT_EQ(plan.exit_code, 0) << plan.error;
  EXPECT_THAT(plan.output, HasSubstr("packed weights"));
}

TEST_F(CriaConvertProgram, TellsItsVersionAndItsOptions) {
  const RunResult version = Convert({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.output, ContainsRegex("^cria-convert [0-9]+\\.[0-9]+\\.[0-9]+\n$"));
  const RunResult help = Convert({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output,
              AllOf(HasSubstr("CHECKPOINT"), HasSubstr("--vocab-only"), HasSubstr("--weights")));
  EXPECT_THAT(help.error, IsEmpty());
}

TEST_F(CriaConvertProgram, TablesCanHaveAnyNumberOfBits) {
  const auto schemes_of = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {checkpoint_, "-o", output_, "--weights", "int8", "--no-verify"});
    const RunResult result = Convert(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(
        RunProgram({support::kCriaProgram, "run", "-m", output_, "-p", "a", "-n", "3"}).exit_code,
        0);
    return result.output;
  };
  for (const char* const bits : {"2", "3", "5", "6"}) {
    const std::string name = std::string("int") + bits;
    EXPECT_THAT(schemes_of({"--fast", "--embedding", name, "--head", "int8"}),
                testing::ContainsRegex(std::string("embed_tokens +w") + bits + "g64"));
    EXPECT_THAT(schemes_of({"--fast", "--head", name}),
                testing::ContainsRegex(std::string("lm_head +w") + bits + "g64"));
  }
  // As for weights: rounded int4 is XNNPACK's.
  EXPECT_THAT(schemes_of({"--fast", "--head", "int4"}), testing::ContainsRegex("lm_head +qb4w"));
  EXPECT_THAT(schemes_of({"--calibration-tokens", "1024", "--head", "int4"}),
              testing::ContainsRegex("lm_head +w4g64"));
  EXPECT_THAT(schemes_of({"--head", "qb4w", "--fast"}), testing::ContainsRegex("lm_head +qb4w"));
}

TEST_F(CriaConvertProgram, WrongUsageHasItsOwnExitCode) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {checkpoint_, "--weights", "int7"},
      {checkpoint_, "--embedding", ""},
      {checkpoint_, "--block-size", "33"},
      {checkpoint_, "--threads", "0"},
      {checkpoint_, "--threads", "many"},
      {checkpoint_, "--no-such-option"},
      {checkpoint_, "another"},
      {checkpoint_, "-o"},
  };
  for (const auto& arguments : wrong) {
    RunOptions options;
    options.working_directory = folder_ / "out";
    const RunResult result = Convert(arguments, options);
    const std::string shown = testing::PrintToString(arguments);
    EXPECT_EQ(result.exit_code, 2) << shown;
    EXPECT_THAT(result.output, IsEmpty()) << shown;
    EXPECT_THAT(result.error, Not(IsEmpty())) << shown;
    EXPECT_THAT(support::FileNames(folder_ / "out"), IsEmpty()) << shown;
  }
}

TEST_F(CriaConvertProgram, AnotherChatTemplate) {
  support::WriteRandomCheckpoint(support::SpecGqa(), checkpoint_);
  support::WriteFile(checkpoint_ / "chat_template.jinja", "{{ own }}");
  const Path given = checkpoint_ / "given.jinja";
  support::WriteFile(given, "{{ given }}");
  const auto stored = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {checkpoint_, "--fast", "-o", output_, "-t", "2"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    EXPECT_EQ(Convert(all).exit_code, 0);
    const RunResult info = support::RunProgram({support::kCriaProgram, "info", "--json", output_});
    return json::parse(info.output)["tokenizer"]["chat_template"].get<std::string>();
  };
  EXPECT_EQ(stored({}), "{{ own }}");
  EXPECT_EQ(stored({"--chat-template", given}), "{{ given }}");
  EXPECT_EQ(stored({"--chat-template", "none"}), "");
  EXPECT_THAT(stored({"--chat-template", "chatml"}), HasSubstr("<|im_start|>"));
  support::WriteFile(given, "\n{{ messages[0 }}");
  const RunResult broken =
      Convert({checkpoint_, "--fast", "-o", output_, "--chat-template", given});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.error, HasSubstr(given.string() + ": The chat template, line 2"));
  const RunResult wrong = Convert({checkpoint_, "--chat-template", "nothing-of-the-kind"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("chatml, llama2, llama3 or none"));
}

TEST_F(CriaConvertProgram, ACheckpointThatIsNotThereIsNamed) {
  ExpectError(Convert({folder_ / "absent", "-o", output_}), {"absent"});
  support::WriteFile(folder_ / "file", "x");
  ExpectError(Convert({folder_ / "file", "-o", output_}), {"file"});
}

TEST_F(CriaConvertProgram, OutputsThatCannotBeWrittenAreNamed) {
  const auto expect = [&](const Path& output, const std::vector<std::string>& words) {
    SCOPED_TRACE(output);
    ExpectError(Convert({checkpoint_, "--fast", "-o", output}), words);
  };
  expect(folder_ / "out" / "absent" / "model.cria",
         {"absent/model.cria: cannot write", "make its folder first"});
  expect(folder_ / "out", {(folder_ / "out").string(), "is not a regular file"});
  expect("/dev/full", {"/dev/full: ", "is not a regular file"});
  expect(checkpoint_ / "config.json" / "model.cria", {"model.cria", "make its folder first"});
  expect(folder_ / "out" / std::string(300, 'x'), {"choose a shorter output name"});
  std::filesystem::permissions(folder_ / "out", std::filesystem::perms(0500));
  ExpectError(Convert({checkpoint_, "--fast", "-o", output_}, {.permissions_hold = true}),
              {output_, "choose an output in a folder that you may write to"});
  std::filesystem::permissions(folder_ / "out", std::filesystem::perms(0700));
}

TEST_F(CriaConvertProgram, FilesOfTheCheckpointAreNotOverwritten) {
  const Path weights = checkpoint_ / "model.safetensors";
  const Path gguf = support::WriteGguf(support::MakeModel(support::SpecGqa()),
                                       support::StorageType::kF32, folder_ / "weights.gguf");
  const Path link = folder_ / "link";
  std::filesystem::create_symlink(weights, link);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {checkpoint_, "-o", weights},
           {checkpoint_, "-o", link},
           {checkpoint_, "-o", checkpoint_ / "config.json"},
           {checkpoint_, "-o", checkpoint_ / "config.json", "--vocab-only"},
           {gguf, "-o", gguf},
           {gguf, "-o", gguf, "--vocab-only"}}) {
    const std::string before = support::ReadFile(arguments[2]);
    const RunResult result = Convert(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error, HasSubstr("is a file of the checkpoint, which would be overwritten"));
    EXPECT_EQ(support::ReadFile(arguments[2]), before);
  }
}

TEST_F(CriaConvertProgram, AFileOfAnotherProgramIsKeptUnlessOverwriteIsGiven) {
  support::WriteFile(output_, "important");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {checkpoint_, "-o", output_}, {checkpoint_, "-o", output_, "--vocab-only"}}) {
    const RunResult refused = Convert(arguments);
    EXPECT_EQ(refused.exit_code, 2);
    // Nothing was converted before.
    EXPECT_EQ(refused.error, "cria-convert: error: " + output_.string() +
                                 ": is a file that Cria did not write, which would be replaced; "
                                 "choose another name, or replace it with --overwrite\n");
    EXPECT_EQ(support::ReadFile(output_), "important");
  }
  EXPECT_EQ(Convert({checkpoint_, "--fast", "-o", output_, "--overwrite"}).exit_code, 0);
  EXPECT_EQ(Convert({checkpoint_, "--fast", "-o", output_}).exit_code, 0);
  support::WriteFile(output_, "");
  EXPECT_EQ(Convert({checkpoint_, "--fast", "-o", output_}).exit_code, 0);
  support::WriteFile(output_, "important");
  EXPECT_EQ(
      Convert({checkpoint_, "--fast", "-o", output_, "--vocab-only", "--overwrite"}).exit_code, 0);
}

TEST_F(CriaConvertProgram, WhatIsNoCheckpointIsNamed) {
  const auto expect = [&](const Path& given, const std::string& words) {
    ExpectError(Convert({given, "-o", output_}), {given.string() + ": " + words});
    ExpectError(RunProgram({support::kConvertProgram, "plan", given}),
                {given.string() + ": " + words});
  };
  std::filesystem::create_directory(folder_ / "empty");
  expect(folder_ / "empty", "is an empty folder; the folder of a checkpoint has config.json");
  support::WriteFile(folder_ / "packed", "CRIAPACK");
  expect(folder_ / "packed", "has packed weights, which belong to a Cria model file; give the");
  std::filesystem::create_directory(folder_ / "models");
  ASSERT_EQ(Convert({checkpoint_, "--fast", "-o", folder_ / "models" / "a.cria"}).exit_code, 0);
  expect(folder_ / "models" / "a.cria", "is a Cria model file already, which needs no conversion");
  ExpectError(
      RunProgram({support::kConvertProgram, "a.cria"}, {.working_directory = folder_ / "models"}),
      {"a.cria: is a Cria model file already, which needs no conversion"});
  expect(folder_ / "models", "is a folder with the model file a.cria; model files need no");
  std::filesystem::create_directory(folder_ / "ggufs");
  support::WriteFile(folder_ / "ggufs" / "a.gguf", "GGUF");
  expect(folder_ / "ggufs", "is a folder with the GGUF file a.gguf; give that file");
  support::WriteFile(folder_ / "ggufs" / "b.gguf", "GGUF...");
  expect(folder_ / "ggufs", "is a folder with the GGUF files a.gguf and b.gguf; give one of them");
  expect(checkpoint_ / "model.safetensors",
         "has weights in the safetensors format; give the checkpoint's folder, ");
  std::filesystem::rename(checkpoint_ / "model.safetensors", checkpoint_ / "pytorch_model.bin");
  ExpectError(Convert({checkpoint_, "--fast", "-o", output_}),
              {"pytorch_model.bin: is not a zip archive"});
}

TEST_F(CriaConvertProgram, AModelInTheFolderOfTheCheckpointIsReplaced) {
  const Path output = checkpoint_ / "model.cria";
  EXPECT_EQ(Convert({checkpoint_, "--fast", "-o", output}).exit_code, 0);
  EXPECT_EQ(Convert({checkpoint_, "--fast", "-o", output}).exit_code, 0);
}

TEST_F(CriaConvertProgram, AFullDiskIsOneSentence) {
  RunOptions options;
  options.file_size_limit_bytes = 20000;
  ExpectError(Convert({checkpoint_, "--fast", "-o", output_}, options),
              {output_, "there is no room for its", "free some or write elsewhere"});
}

}  // namespace
}  // namespace cria
