// How checkpoints of sentence-transformers say how they pool, and their names of tensors.

#include "converter/hugging_face/hf_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/open_checkpoint.h"
#include "model/model_file.h"
#include "support/checkpoint_writer.h"
#include "support/convert_model.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"

namespace cria {
namespace {

constexpr const char* kModules = R"([
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
])";

class HfPoolingTest : public testing::Test {
 protected:
  void Write(const std::string& modules, const std::string& pooling) const {
    std::filesystem::create_directories(folder_.path() / "1_Pooling");
    support::WriteFile(folder_.path() / "modules.json", modules);
    support::WriteFile(folder_.path() / "1_Pooling" / "config.json", pooling);
  }
  std::string Refusal(const std::string& modules, const std::string& pooling) const {
    Write(modules, pooling);
    const auto read = ReadHfPooling(folder_.path());
    return read ? "" : std::string(read.error().message());
  }

  support::TemporaryDirectory folder_;
};

TEST_F(HfPoolingTest, OlderAndNewerSpellings) {
  EXPECT_EQ(Unwrap(ReadHfPooling(folder_.path())), std::nullopt) << "not for embeddings";
  Write(kModules, R"({"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
                      "pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true,
                      "include_prompt": true})");
  EXPECT_EQ(Unwrap(ReadHfPooling(folder_.path())), Pooling::kLast);
  Write(kModules, R"({"pooling_mode_mean_tokens": true})");
  EXPECT_EQ(Unwrap(ReadHfPooling(folder_.path())), Pooling::kMean);
  Write(kModules, R"({"embedding_dimension": 64, "pooling_mode": "lasttoken"})");
  EXPECT_EQ(Unwrap(ReadHfPooling(folder_.path())), Pooling::kLast);
  Write(kModules, R"({"pooling_mode": "mean"})");
  EXPECT_EQ(Unwrap(ReadHfPooling(folder_.path())), Pooling::kMean);
}

TEST_F(HfPoolingTest, WhatIsNotSupportedIsNamed) {
  EXPECT_THAT(Refusal(kModules, R"({"pooling_mode_cls_token": true})"),
              testing::HasSubstr("\"cls_token\" is not supported"));
  EXPECT_THAT(Refusal(kModules, R"({"pooling_mode": "weightedmean"})"),
              testing::HasSubstr("\"weightedmean\""));
  EXPECT_THAT(Refusal(kModules, "{}"), testing::HasSubstr("0 modes"));
  EXPECT_THAT(
      Refusal(kModules, R"({"pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": true})"),
      testing::HasSubstr("2 modes"));
  EXPECT_THAT(Refusal(kModules, R"({"pooling_mode_lasttoken": 7})"),
              testing::HasSubstr("lasttoken"));
  EXPECT_THAT(
      Refusal(R"([{"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])", "{}"),
      testing::HasSubstr("Dense"));
  EXPECT_THAT(Refusal(R"([{"type": "models.Pooling", "path": "../elsewhere"}])", "{}"),
              testing::HasSubstr("is not a folder of the checkpoint"));
  for (const char* const text : {"", "[", "[7]", "{}", "[]]"}) {
    EXPECT_NE(Refusal(text, R"({"pooling_mode_lasttoken": true})"), "") << text;
  }
}

// Takes "model." from the names in a safetensors file, whose header may end with spaces.
void ShortenNames(const std::filesystem::path& path) {
  std::string bytes = support::ReadFile(path);
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  std::string header = bytes.substr(sizeof size, size);
  for (size_t at = header.find("\"model."); at != std::string::npos; at = header.find("\"model.")) {
    header.erase(at + 1, std::strlen("model."));
  }
  ASSERT_LT(header.size(), size);
  header.resize(size, ' ');
  support::WriteFile(path, bytes.replace(sizeof size, size, header));
}

TEST_F(HfPoolingTest, NamesWithoutAPrefixAndNoHead) {
  const reference::ReferenceModel model = support::MakeModel(support::SpecQwen3());
  support::WriteHuggingFaceDirectory(model, folder_.path(), {});
  ShortenNames(folder_.path() / "model.safetensors");
  // sentence-transformers saves the architecture without a head, too.
  std::string config = support::ReadFile(folder_.path() / "config.json");
  const std::string with_head = "Qwen3ForCausalLM";
  config.replace(config.find(with_head), with_head.size(), "Qwen3Model");
  support::WriteFile(folder_.path() / "config.json", config);
  Write(kModules, R"({"pooling_mode_mean_tokens": true})");
  const Checkpoint checkpoint = Unwrap(OpenCheckpoint(folder_.path()));
  EXPECT_EQ(checkpoint.pooling, Pooling::kMean);
  EXPECT_TRUE(checkpoint.config.tie_word_embeddings);
  for (const auto& [name, tensor] : model.tensors) EXPECT_TRUE(checkpoint.tensors.contains(name));

  const std::string path = folder_.path() / "model.cria";
  support::ConvertModel(folder_.path(), path, {.weights = Scheme::kQc8w});
  EXPECT_EQ(Unwrap(ModelFile::Open(path)).pooling(), Pooling::kMean);
}

// Converting moves the gain of the last norm into a head of its own, but not if embeddings are read
// behind the norm.
TEST_F(HfPoolingTest, TheLastNormKeepsItsGain) {
  reference::ReferenceModel model = support::MakeModel(support::SpecGqa());
  std::vector<float>& gain = model.tensors.at("model.norm.weight").values;
  gain[3] = 50.0f;  // Worth moving.
  support::WriteHuggingFaceDirectory(model, folder_.path(), {});
  const auto stored_gain = [&](const char* name) {
    const std::string path = folder_.path() / name;
    support::ConvertModel(folder_.path(), path, {.weights = Scheme::kQc8w});
    const ModelFile file = Unwrap(ModelFile::Open(path));
    std::vector<float> stored(gain.size());
    Unwrap(
        file.Read(file.tensor(TensorRole::kNorm).data, std::as_writable_bytes(std::span(stored))));
    return stored;
  };
  EXPECT_NE(stored_gain("chat.cria"), gain);
  Write(kModules, R"({"pooling_mode_lasttoken": true})");
  EXPECT_EQ(stored_gain("embedding.cria"), gain);
}

}  // namespace
}  // namespace cria
