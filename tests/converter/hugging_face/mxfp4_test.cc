// gpt-oss's checkpoints with experts in MXFP4.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "converter/convert.h"
#include "converter/hugging_face/safetensors.h"
#include "converter/open_checkpoint.h"
#include "model/model_file.h"
#include "reference/hugging_face_directory.h"
#include "support/family_checkpoint.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"
#include "weights/block_numbers.h"

namespace cria {
namespace {

using ::testing::HasSubstr;

class Mxfp4Test : public ::testing::Test {
 protected:
  Mxfp4Test() { support::WriteFamilyDirectory(support::FamilyNamed("GptOssMxfp4"), folder_); }

  // Replaces a text in a file, with one of the same length if it is not config.json.
  void Replace(const char* file, std::string_view from, std::string_view to) {
    std::string bytes = support::ReadFile(folder_ / file);
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, from.size(), to);
    support::WriteFile(folder_ / file, bytes);
  }
  void ExpectRefused(ErrorCode code, const std::string& reason) {
    const auto opened = OpenCheckpoint(folder_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), code) << opened.error().message();
    EXPECT_THAT(opened.error().message(), HasSubstr(reason));
  }
  ModelFile ConvertedAs(const ConvertOptions& options) {
    report_ = Unwrap(Convert(folder_, output_, options));
    return Unwrap(ModelFile::Open(output_));
  }
  static std::vector<float> WeightsOf(const ModelFile& file, TensorRole role) {
    const StoredTensor& tensor = file.tensor(role, 1);
    std::vector<std::byte> data(tensor.data.bytes);
    Unwrap(file.Read(tensor.data, data));
    std::vector<float> weights(tensor.spec.output_channels * tensor.spec.input_channels);
    if (tensor.layout.block_format() != nullptr) {
      DequantizeBlocks(*tensor.layout.block_format(), data.data(), weights);
    } else {
      std::memcpy(weights.data(), data.data(), data.size());
    }
    return weights;
  }
  // The weights of the model's layer 1 are those that the independent reader finds.
  void ExpectWeights(const ModelFile& file) {
    const auto model = reference::ReadHuggingFaceDirectory(folder_);
    const std::string experts = "model.layers.1.mlp.experts.";
    const reference::ReferenceTensor& gate_up = model.tensors.at(experts + "gate_up_proj");
    const reference::ReferenceTensor& down = model.tensors.at(experts + "down_proj");
    const size_t hidden = gate_up.shape[1];
    const size_t width = down.shape[1];
    const std::vector<float> first = WeightsOf(file, TensorRole::kExpertsGateUpProj);
    const std::vector<float> second = WeightsOf(file, TensorRole::kExpertsDownProj);
    ASSERT_EQ(first.size(), gate_up.values.size());
    ASSERT_EQ(second.size(), down.values.size());
    for (size_t i = 0; i < first.size(); ++i) {
      const size_t expert = i / (2 * width * hidden);
      const size_t row = i / hidden % (2 * width);  // Gates, then up; by turns in the checkpoint.
      const size_t stored_row = 2 * (row % width) + row / width;
      const size_t at = (expert * hidden + i % hidden) * 2 * width + stored_row;
      ASSERT_EQ(first[i], gate_up.values[at]) << i;
    }
    for (size_t i = 0; i < second.size(); ++i) {
      const size_t expert = i / (hidden * width);
      const size_t at = (expert * width + i % width) * hidden + i / width % hidden;
      ASSERT_EQ(second[i], down.values[at]) << i;
    }
  }

  support::TemporaryDirectory directory_;
  std::filesystem::path folder_ = directory_.path() / "model";
  std::filesystem::path output_ = directory_.path() / "model.cria";
  ConvertReport report_;
};

TEST_F(Mxfp4Test, CodesAreKept) {
  EXPECT_TRUE(Unwrap(HasCodesToKeep(folder_)));
  const ModelFile file = ConvertedAs({.weights = Scheme::kQc8w, .keeps_codes = true});
  EXPECT_EQ(file.tensor(TensorRole::kExpertsGateUpProj, 0).layout.scheme, Scheme::kMxfp4);
  EXPECT_EQ(file.tensor(TensorRole::kExpertsDownProj, 0).layout.scheme, Scheme::kMxfp4);
  EXPECT_EQ(file.tensor(TensorRole::kQkvProj, 0).layout.scheme, Scheme::kQc8w);
  ASSERT_FALSE(report_.notes.empty());
  EXPECT_THAT(report_.notes.back(), HasSubstr("8 of 16 matrices of the layers are rounded"));
  ExpectWeights(file);
}

TEST_F(Mxfp4Test, CodesCanBeReadAsFloats) { ExpectWeights(ConvertedAs({.weights = Scheme::kF32})); }

TEST_F(Mxfp4Test, AConfigurationWithoutWeightsIsPlannedAlike) {
  const ConvertOptions options = {.weights = Scheme::kQc8w, .keeps_codes = true};
  const ModelOutline outline = Unwrap(OutlineConversion(folder_, options));
  std::filesystem::remove(folder_ / "model.safetensors");
  EXPECT_TRUE(Unwrap(HasCodesToKeep(folder_)));
  EXPECT_EQ(Unwrap(OutlineConversion(folder_, options)).matrices, outline.matrices);
}

TEST_F(Mxfp4Test, WeightsMayBeInSeveralFiles) {
  // Blocks and scales need not be in one file.
  const std::string scales = "model.layers.1.mlp.experts.down_proj_scales";
  std::string map;
  for (const auto& [name, source] : Unwrap(ReadSafetensors(folder_ / "model.safetensors"))) {
    map += (map.empty() ? "\"" : ",\"") + name + "\":\"" +
           (name == scales ? "two.safetensors" : "one.safetensors") + "\"";
  }
  std::filesystem::copy(folder_ / "model.safetensors", folder_ / "two.safetensors");
  std::filesystem::rename(folder_ / "model.safetensors", folder_ / "one.safetensors");
  support::WriteFile(folder_ / "model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  const ModelFile file = ConvertedAs({.weights = Scheme::kF32});
  std::filesystem::rename(folder_ / "one.safetensors", folder_ / "model.safetensors");
  std::filesystem::remove(folder_ / "model.safetensors.index.json");
  ExpectWeights(file);
}

TEST_F(Mxfp4Test, APartOfATensorMustNotBeMissing) {
  Replace("model.safetensors", "layers.1.mlp.experts.down_proj_scales",
          "layers.1.mlp.experts.down_proj_scalez");
  ExpectRefused(ErrorCode::kInvalidFile, "down_proj_blocks\" has no scales in bytes beside it");
}

TEST_F(Mxfp4Test, ShapesOfPartsMustFit) {
  // [8, 64, 3] of [8, 64, 3, 16].
  Replace("model.safetensors", "\"shape\":[8,64,3]", "\"shape\":[8,3,64]");
  ExpectRefused(ErrorCode::kInvalidFile,
                "down_proj_blocks\" has shape [8, 64, 3, 16], which does not fit that of its "
                "scales, [8, 3, 64]");
}

TEST_F(Mxfp4Test, AnExponentThatIsNotANumberIsRefused) {
  const auto tensors = Unwrap(ReadSafetensors(folder_ / "model.safetensors"));
  const TensorSource& scales = tensors.at("model.layers.1.mlp.experts.down_proj_scales");
  {
    std::fstream file(folder_ / "model.safetensors", std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(scales.offset));
    file.put('\xff');
  }
  const auto converted = Convert(folder_, output_, {.weights = Scheme::kQc8w, .keeps_codes = true});
  ASSERT_FALSE(converted);
  EXPECT_THAT(converted.error().message(), HasSubstr("holds infinity or NaN at [0, 0]"));
}

TEST_F(Mxfp4Test, BytesWithoutTheFieldAreRefused) {
  Replace("config.json", "\"quantization_config\"", "\"other\"");
  ExpectRefused(ErrorCode::kUnsupported, "has dtype U8");
}

TEST_F(Mxfp4Test, OtherWaysToQuantizeAreRefused) {
  for (const char* method : {"\"bitsandbytes\"", "null", "4"}) {
    support::WriteFamilyDirectory(support::FamilyNamed("GptOssMxfp4"), folder_);
    Replace("config.json", "\"mxfp4\"", method);
    ExpectRefused(ErrorCode::kUnsupported, "quantization_config is ");
  }
}

}  // namespace
}  // namespace cria
