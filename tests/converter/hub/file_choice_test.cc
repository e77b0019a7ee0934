#include "converter/hub/file_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"

namespace cria::hub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

ModelInfo InfoWith(const std::vector<std::string>& paths) {
  ModelInfo info;
  for (const std::string& path : paths) info.files.push_back({.path = path});
  return info;
}

std::vector<std::string> Paths(Result<std::vector<RemoteFile>> files) {
  std::vector<std::string> paths;
  for (const RemoteFile& file : Unwrap(std::move(files))) paths.push_back(file.path);
  return paths;
}

const CheckpointName kName = {.organization = "a", .name = "b"};

TEST(FileChoice, TakesOnlyWhatTheConverterReads) {
  const ModelInfo info =
      InfoWith({".gitattributes", "README.md", "config.json", "generation_config.json",
                "model.safetensors", "model.safetensors.index.json", "original/tokenizer.model",
                "pytorch_model.bin", "special_tokens_map.json", "tokenizer.json",
                "tokenizer_config.json", "chat_template.jinja"});
  EXPECT_THAT(Paths(ChooseFiles(kName, info, Purpose::kConversion)),
              UnorderedElementsAre("config.json", "generation_config.json", "model.safetensors",
                                   "special_tokens_map.json", "tokenizer.json",
                                   "tokenizer_config.json", "chat_template.jinja"));
  EXPECT_THAT(
      Paths(ChooseFiles(kName, info, Purpose::kVocabulary)),
      UnorderedElementsAre("config.json", "generation_config.json", "special_tokens_map.json",
                           "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"));
  EXPECT_THAT(Paths(ChooseFiles(kName, info, Purpose::kPlan)), ElementsAre("config.json"));
}

TEST(FileChoice, TakesPyTorchsFilesIfThereAreNoOthers) {
  const auto last = [](std::vector<std::string> paths) {
    paths.insert(paths.begin(), {"config.json", "tokenizer.json"});
    return Paths(ChooseFiles(kName, InfoWith(paths), Purpose::kConversion)).back();
  };
  EXPECT_EQ(last({"pytorch_model.bin"}), "pytorch_model.bin");
  EXPECT_EQ(last({"pytorch_model.bin.index.json", "pytorch_model-00001-of-00001.bin"}),
            "pytorch_model.bin.index.json");
  EXPECT_EQ(last({"pytorch_model.bin", "model.safetensors.index.json"}),
            "model.safetensors.index.json");
}

TEST(FileChoice, TakesTheIndexLastAndThenItsFiles) {
  const ModelInfo info =
      InfoWith({"model-1.safetensors", "model-2.safetensors", "other.safetensors", "config.json",
                "model.safetensors.index.json", "tokenizer.model"});
  EXPECT_THAT(Paths(ChooseFiles(kName, info, Purpose::kConversion)),
              ElementsAre("config.json", "tokenizer.model", "model.safetensors.index.json"));
  const support::TemporaryDirectory folder;
  const auto index = folder / "index.json";
  const auto shards = [&](const std::string& text) {
    support::WriteFile(index, text);
    return ChooseShards(kName, info, index);
  };
  EXPECT_THAT(Paths(shards(R"({"weight_map": {"x": "model-2.safetensors",
      "y": "model-1.safetensors", "z": "model-2.safetensors"}})")),
              ElementsAre("model-1.safetensors", "model-2.safetensors"));
  for (const char* text :
       {"{}", R"({"weight_map": {}})", R"({"weight_map": ["a"]})", R"({"weight_map": {"x": 1}})",
        R"({"weight_map": {"x": "../config.json"}})", R"({"weight_map": {"x": "missing"}})", "x"}) {
    EXPECT_FALSE(shards(text)) << text;
  }
}

TEST(FileChoice, ListsWhatIsThereInsteadOfAModel) {
  const auto error_of = [](const std::vector<std::string>& paths) {
    const auto files = ChooseFiles(kName, InfoWith(paths), Purpose::kConversion);
    return files ? "" : files.error().message();
  };
  EXPECT_THAT(error_of({"README.md", "m-Q4.gguf", "m-Q8.gguf"}),
              HasSubstr("has no config.json, but GGUF files; name one of them, as in "
                        "hf:a/b/m-Q4.gguf. There are m-Q4.gguf, m-Q8.gguf"));
  EXPECT_THAT(error_of({"config.json", "tokenizer.json", "m.gguf"}),
              HasSubstr("has no model.safetensors, but GGUF files"));
  EXPECT_THAT(error_of({"consolidated.00.pth", "params.json", "tokenizer.model"}),
              HasSubstr("Meta's own format; download its folder and convert that. There are "
                        "consolidated.00.pth, params.json, tokenizer.model"));
  EXPECT_THAT(error_of({"config.json", "tokenizer.json", "tf_model.h5"}),
              HasSubstr("has no model.safetensors; models need"));
  EXPECT_THAT(error_of({"config.json", "model.safetensors"}),
              HasSubstr("has no tokenizer.json or tokenizer.model"));
  EXPECT_THAT(error_of({}), HasSubstr("There are no files"));
  std::vector<std::string> many;
  for (int i = 0; i < 20; ++i) many.push_back("f" + std::to_string(i));
  EXPECT_THAT(error_of(many), testing::EndsWith("f11 and 8 more"));
}

TEST(FileChoice, AGgufFileComesWithAllItsParts) {
  const ModelInfo info = InfoWith({"Q4/m-00001-of-00002.gguf", "Q4/m-00002-of-00002.gguf",
                                   "single.gguf", "torn-00001-of-00002.gguf", "config.json"});
  CheckpointName name = kName;
  name.file = "single.gguf";
  EXPECT_THAT(Paths(ChooseFiles(name, info, Purpose::kConversion)), ElementsAre("single.gguf"));
  for (const char* part : {"Q4/m-00001-of-00002.gguf", "Q4/m-00002-of-00002.gguf"}) {
    name.file = part;
    EXPECT_THAT(Paths(ChooseFiles(name, info, Purpose::kConversion)),
                ElementsAre("Q4/m-00001-of-00002.gguf", "Q4/m-00002-of-00002.gguf"));
  }
  name.file = "torn-00001-of-00002.gguf";
  EXPECT_THAT(ChooseFiles(name, info, Purpose::kConversion).error().message(),
              HasSubstr("has no file torn-00002-of-00002.gguf, which is a part of torn-00001"));
  name.file = "other.gguf";
  EXPECT_THAT(ChooseFiles(name, info, Purpose::kConversion).error().message(),
              HasSubstr("its GGUF files are Q4/m-00001-of-00002.gguf"));
  name.file = "single.gguf";
  EXPECT_THAT(ChooseFiles(name, info, Purpose::kPlan).error().message(),
              HasSubstr("the plan of a GGUF file needs the whole file"));
}

}  // namespace
}  // namespace cria::hub
