// What cria-convert says about checkpoints that it cannot convert.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/convert/cria_convert_program.h"
#include "converter/test_checkpoint.h"
#include "support/files.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using nlohmann::json;
using support::RunResult;
using testing::HasSubstr;
using testing::Not;
using Path = std::filesystem::path;

void EditJson(const Path& path, const std::function<void(json&)>& edit) {
  json content = json::parse(support::ReadFile(path));
  edit(content);
  support::WriteFile(path, content.dump());
}

// Changes the header and the data of the weights.
void EditWeights(const Path& folder, const std::function<void(json&, std::string&)>& edit) {
  const Path path = folder / "model.safetensors";
  const std::string file = support::ReadFile(path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), sizeof header_bytes);
  json header = json::parse(file.substr(sizeof header_bytes, header_bytes));
  std::string data = file.substr(sizeof header_bytes + header_bytes);
  edit(header, data);
  support::WriteSafetensors(path, header.dump(), data);
}

struct BadInput {
  std::string name;
  std::function<void(const Path& checkpoint)> spoil;
  std::vector<std::string> words;  // What the sentence must name.
};

constexpr const char* kUpProjection = "model.layers.1.mlp.up_proj.weight";

BadInput BadConfig(std::string name, const std::function<void(json&)>& edit,
                   std::vector<std::string> words) {
  words.push_back("config.json");
  return {std::move(name), [edit](const Path& folder) { EditJson(folder / "config.json", edit); },
          std::move(words)};
}

BadInput BadWeights(std::string name, const std::function<void(json&, std::string&)>& edit,
                    std::vector<std::string> words) {
  return {std::move(name), [edit](const Path& folder) { EditWeights(folder, edit); },
          std::move(words)};
}

std::vector<BadInput> BadConfigs() {
  return {
      {"no config.json",
       [](const Path& folder) { std::filesystem::remove(folder / "config.json"); },
       {"config.json"}},
      {"malformed config.json",
       [](const Path& folder) { support::WriteFile(folder / "config.json", "{\"a\": \n1,,}"); },
       {"config.json", "is not JSON"}},
      {"deep config.json",
       [](const Path& folder) {
         support::WriteFile(folder / "config.json", std::string(100'000, '['));
       },
       {"config.json", "is nested too deeply"}},
      BadConfig("no hidden_size", [](json& config) { config.erase("hidden_size"); },
                {"hidden_size is missing"}),
      BadConfig("hidden_size of 0", [](json& config) { config["hidden_size"] = 0; },
                {"hidden_size"}),
      BadConfig("other architecture",
                [](json& config) { config["architectures"] = {"MambaForCausalLM"}; },
                {"architectures", "MambaForCausalLM", "LlamaForCausalLM"}),
      BadConfig(
          "other rope type",
          [](json& config) { config["rope_scaling"] = {{"rope_type", "mrope"}, {"factor", 4.0}}; },
          {"rope_scaling.rope_type", "mrope"}),
  };
}

std::vector<BadInput> BadWeightFiles() {
  return {
      {"no weights",
       [](const Path& folder) { std::filesystem::remove(folder / "model.safetensors"); },
       {"checkpoint", "model.safetensors"}},
      {"cut short",
       [](const Path& folder) {
         const Path path = folder / "model.safetensors";
         std::filesystem::resize_file(path, std::filesystem::file_size(path) - 100);
       },
       {"model.safetensors", "cut short"}},
      {"header length",
       [](const Path& folder) {
         const uint64_t length = uint64_t{1} << 63;
         support::WriteFile(folder / "model.safetensors",
                            std::string(reinterpret_cast<const char*>(&length), 8) + "{}");
       },
       {"model.safetensors", "a header of 9223372036854775808 bytes"}},
      BadWeights("overlap",
                 [](json& header, std::string& data) {
                   // The added tensor overlaps the last one.
                   header["extra"] = {{"dtype", "F32"},
                                      {"shape", {1}},
                                      {"data_offsets", {data.size() - 4, data.size()}}};
                 },
                 {"model.safetensors", "overlaps"}),
      BadWeights("out of range",
                 [](json& header, std::string& data) {
                   header["extra"] = {{"dtype", "F32"},
                                      {"shape", {1}},
                                      {"data_offsets", {data.size(), data.size() + 4}}};
                 },
                 {"model.safetensors", "\"extra\"", "data_offsets"}),
      BadWeights("dtype",
                 [](json& header, std::string&) { header[kUpProjection]["dtype"] = "I32"; },
                 {"model.safetensors", kUpProjection, "dtype I32"}),
  };
}

std::vector<BadInput> BadTensors() {
  return {
      BadWeights("shape",
                 [](json& header, std::string&) {
                   json& shape = header[kUpProjection]["shape"];
                   std::swap(shape[0], shape[1]);
                 },
                 {"model.safetensors", kUpProjection, "has shape ["}),
      BadWeights("not a number",
                 [](json& header, std::string& data) {
                   const size_t begin = header[kUpProjection]["data_offsets"][0];
                   const uint32_t nan = 0x7fc00000;
                   std::memcpy(data.data() + begin + 12, &nan, sizeof nan);
                 },
                 {"model.safetensors", kUpProjection, "at [0, 3]"}),
      BadWeights("missing tensor",
                 [](json& header, std::string&) {
                   header["other"] = header[kUpProjection];
                   header.erase(kUpProjection);
                 },
                 {"checkpoint", kUpProjection, "is missing"}),
      BadWeights("bias",
                 [](json& header, std::string& data) {
                   header["model.layers.0.self_attn.q_proj.bias"] = {
                       {"dtype", "F32"},
                       {"shape", {64}},
                       {"data_offsets", {data.size(), data.size() + 256}}};
                   data.append(256, '\0');
                 },
                 {"model.safetensors", "model.layers.0.self_attn.q_proj.bias"}),
  };
}

std::vector<BadInput> BadTokenizers() {
  return {
      {"no tokenizer",
       [](const Path& folder) { std::filesystem::remove(folder / "tokenizer.json"); },
       {"checkpoint", "tokenizer.model", "tokenizer.json"}},
      {"WordPiece",
       [](const Path& folder) {
         EditJson(folder / "tokenizer.json",
                  [](json& tokenizer) { tokenizer["model"]["type"] = "WordPiece"; });
       },
       {"tokenizer.json", "model.type", "WordPiece"}},
      {"malformed tokenizer",
       [](const Path& folder) { support::WriteFile(folder / "tokenizer.json", "{"); },
       {"tokenizer.json", "is not JSON"}},
      {"malformed chat template",
       [](const Path& folder) {
         support::WriteFile(folder / "chat_template.jinja", "\n{{ messages[0 }}");
       },
       {"chat template, line 2", "']'", "--chat-template"}},
  };
}

TEST_F(CriaConvertProgram, EveryBadInputIsOneSentenceAndLeavesNoFile) {
  for (const auto& cases : {BadConfigs(), BadWeightFiles(), BadTensors(), BadTokenizers()}) {
    for (const BadInput& bad : cases) {
      SCOPED_TRACE(bad.name);
      std::filesystem::remove_all(checkpoint_);
      support::WriteRandomCheckpoint(support::SpecGqa(), checkpoint_);
      bad.spoil(checkpoint_);
      const RunResult result = Convert({checkpoint_, "--fast", "-o", output_, "-t", "2"});
      if (bad.name == "not a number") {
        // This error is found only after the conversion has begun.
        EXPECT_THAT(result.error, HasSubstr("cria-convert: error: "));
        const size_t begin = result.error.find("cria-convert: error: ");
        EXPECT_THAT(result.error.substr(0, begin), Not(HasSubstr("error")));
        RunResult sentence = result;
        sentence.error = result.error.substr(begin);
        ExpectError(sentence, bad.words);
      } else {
        ExpectError(result, bad.words);
      }
    }
  }
}

}  // namespace
}  // namespace cria
