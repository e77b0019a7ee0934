// A checkpoint whose weights were trained, or rounded, for Q4_0, and then stored as bf16.

#include "converter/write/lattice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "core/numeric.h"
#include "model/model_file.h"
#include "support/checkpoint_writer.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"
#include "weights/block_numbers.h"

namespace cria {
namespace {

constexpr size_t kWeightsOfScale = 32;

bool IsMatrixOfLayer(const std::string& name) {
  return name.find("layers.") != std::string::npos && name.ends_with("_proj.weight");
}

class LatticeTest : public testing::Test {
 protected:
  LatticeTest() : model_(support::MakeModel(support::SpecGqa())) {}

  // Puts the matrices of the layers on a lattice of scales of both signs and codes from -8 to 7,
  // and remembers the codes. Blocks of the kinds 0 to 2 use codes up to -8, 7 and 3.
  void TakeLattice() {
    std::mt19937 random(3);
    for (auto& [name, tensor] : model_.tensors) {
      if (!IsMatrixOfLayer(name)) continue;
      std::vector<int>& codes = codes_[name];
      for (size_t i = 0; i < tensor.values.size(); i += kWeightsOfScale) {
        const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
        const float scale = sign * F16ToFloat(static_cast<uint16_t>(0x2000 + random() % 0x800));
        const uint32_t kind = random() % 3;
        for (size_t j = i; j < i + kWeightsOfScale; ++j) {
          int code = static_cast<int>(random() % 16) - 8;
          if (kind == 1) code = std::max(code, -7);
          if (kind == 2) code /= 3;
          if (j == i) code = kind == 0 ? -8 : kind == 1 ? 7 : 2;
          tensor.values[j] = scale * static_cast<float>(code);
          codes.push_back(code);
        }
      }
    }
  }

  ConvertReport ConvertIt(support::StorageType storage, ConvertOptions options) {
    support::WriteHuggingFaceDirectory(model_, folder_ / "checkpoint", {.storage = storage});
    return Unwrap(Convert(folder_ / "checkpoint", folder_ / "model.cria", options));
  }

  support::TemporaryDirectory folder_;
  reference::ReferenceModel model_;
  std::map<std::string, std::vector<int>> codes_;
};

const ConvertOptions kFindsCodes = {.weights = Scheme::kW4G64, .finds_codes = true};

TEST_F(LatticeTest, CodesAreFoundAgain) {
  TakeLattice();
  for (const support::StorageType storage :
       {support::StorageType::kBf16, support::StorageType::kF32}) {
    EXPECT_TRUE(ConvertIt(storage, kFindsCodes).found_codes);
    const ModelFile file = Unwrap(ModelFile::Open((folder_ / "model.cria").string()));
    for (int layer = 0; layer < static_cast<int>(file.config().num_hidden_layers); ++layer) {
      const StoredTensor& stored = file.tensor(TensorRole::kOProj, layer);
      ASSERT_EQ(stored.layout.scheme, Scheme::kQ4_0);
      const auto data = Unwrap(file.Map(stored.data));
      const std::string name = "model.layers." + std::to_string(layer) + ".self_attn.o_proj.weight";
      const std::vector<int>& codes = codes_.at(name);
      const std::vector<float>& weights = model_.tensors.at(name).values;
      const BlockFormat& format = *stored.layout.block_format();
      for (size_t block = 0; block < codes.size() / kWeightsOfScale; ++block) {
        BlockNumbers numbers;
        ReadBlock(format, data.bytes().data() + block * format.bytes, numbers);
        const float scale = F16ToFloat(numbers.scale);
        for (size_t i = 0; i < kWeightsOfScale; ++i) {
          const size_t at = block * kWeightsOfScale + i;
          const int code = numbers.codes[i] - format.zero_point;
          // Both signs may change if no code is -8, and codes may become multiples if all are
          // small.
          if (std::abs(codes[block * kWeightsOfScale]) > 2) {
            EXPECT_EQ(std::abs(code), std::abs(codes[at])) << at;
          }
          EXPECT_NEAR(scale * static_cast<float>(code), weights[at],
                      0.005f * std::fabs(weights[at]))
              << at;
        }
      }
    }
  }
}

TEST_F(LatticeTest, OneMatrixThatIsOnNoneIsEnoughForUsualCodes) {
  TakeLattice();
  auto& values = model_.tensors.at("model.layers.1.mlp.down_proj.weight").values;
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  for (float& value : values) value = normal(random);
  EXPECT_FALSE(ConvertIt(support::StorageType::kBf16, kFindsCodes).found_codes);
  const ModelFile file = Unwrap(ModelFile::Open((folder_ / "model.cria").string()));
  EXPECT_EQ(file.tensor(TensorRole::kOProj, 0).layout.scheme, Scheme::kW4G64);
}

TEST_F(LatticeTest, WithoutTheOptionNothingIsLookedFor) {
  TakeLattice();
  EXPECT_FALSE(ConvertIt(support::StorageType::kBf16, {.weights = Scheme::kW4G64}).found_codes);
}

}  // namespace
}  // namespace cria
