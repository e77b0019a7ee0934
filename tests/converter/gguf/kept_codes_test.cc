// Models that keep the codes of a GGUF file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "converter/convert.h"
#include "converter/gguf/stored_weights.h"
#include "model/model_file.h"
#include "support/block_gguf.h"
#include "support/family_checkpoint.h"
#include "support/family_gguf.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/unwrap.h"
#include "weights/block_numbers.h"
#include "weights/random_blocks.h"

namespace cria {
namespace {

using ::testing::HasSubstr;

std::vector<Scheme> SchemesOf(const ModelFile& file, TensorRole role, int layer) {
  std::vector<Scheme> schemes;
  for (const StoredTensor& piece : file.pieces(role, layer)) schemes.push_back(piece.layout.scheme);
  return schemes;
}

class KeptCodesTest : public ::testing::Test {
 protected:
  using TypeOf = std::function<std::string_view(const std::string& name)>;

  std::filesystem::path Write(const TypeOf& type_of,
                              const support::CheckpointSpec& spec = support::SpecOfBlocks()) {
    reference::ReferenceModel model = support::MakeModel(spec);
    support::WriteBlockGguf(gguf_, type_of, model);
    return gguf_;
  }
  ConvertReport ConvertTo(const std::filesystem::path& output, const ConvertOptions& options) {
    return Unwrap(Convert(gguf_, output, options));
  }
  // Converts the file with and without its codes, and expects the same weights of both.
  void ExpectSameWeights() {
    ConvertTo(kept_, {.weights = Scheme::kQc8w, .keeps_codes = true});
    ConvertTo(f32_, {.weights = Scheme::kF32});
    const ModelFile kept = Unwrap(ModelFile::Open(kept_));
    const ModelFile f32 = Unwrap(ModelFile::Open(f32_));
    Unwrap(kept.VerifyPayload());
    for (const TensorSpec& spec : ExpectedTensors(kept.config())) {
      EXPECT_EQ(WeightsOf(kept, spec.role, spec.layer), WeightsOf(f32, spec.role, spec.layer))
          << spec.Name();
    }
  }

  support::TemporaryDirectory directory_;
  std::filesystem::path gguf_ = directory_.path() / "model.gguf";
  std::filesystem::path kept_ = directory_.path() / "kept.cria";
  std::filesystem::path f32_ = directory_.path() / "f32.cria";
};

TEST_F(KeptCodesTest, AreTheWeightsOfTheFileInEveryFormat) {
  for (const BlockFormat& format : kBlockFormats) {
    if (!IsGgmlFormat(format.scheme)) continue;
    SCOPED_TRACE(format.name);
    Write([&](const std::string&) { return format.name; });
    ExpectSameWeights();
    const ModelFile kept = Unwrap(ModelFile::Open(kept_));
    for (const StoredTensor& tensor : kept.tensors()) {
      EXPECT_EQ(tensor.layout.scheme, tensor.spec.is_vector() ? Scheme::kF32 : format.scheme);
    }
  }
}

TEST_F(KeptCodesTest, RowsOfSeveralFormatsBecomePieces) {
  Write([](const std::string& name) -> std::string_view {
    if (name.contains("layers.0.self_attn.v_proj") || name.contains("down_proj")) return "Q6_K";
    if (name.contains("layers.1.self_attn.k_proj")) return "Q8_0";
    if (name.contains("layers.1.mlp.up_proj")) return "Q5_K";
    return "Q4_K";
  });
  ExpectSameWeights();
  const ModelFile kept = Unwrap(ModelFile::Open(kept_));
  using Schemes = std::vector<Scheme>;
  EXPECT_EQ(SchemesOf(kept, TensorRole::kQkvProj, 0), (Schemes{Scheme::kQ4K, Scheme::kQ6K}));
  EXPECT_EQ(SchemesOf(kept, TensorRole::kQkvProj, 1),
            (Schemes{Scheme::kQ4K, Scheme::kQ8_0, Scheme::kQ4K}));
  EXPECT_EQ(SchemesOf(kept, TensorRole::kGateUpProj, 0), Schemes{Scheme::kQ4K});
  EXPECT_EQ(SchemesOf(kept, TensorRole::kGateUpProj, 1), (Schemes{Scheme::kQ4K, Scheme::kQ5K}));
  EXPECT_EQ(SchemesOf(kept, TensorRole::kDownProj, 1), Schemes{Scheme::kQ6K});
  const auto pieces = kept.pieces(TensorRole::kQkvProj, 1);
  EXPECT_EQ(pieces[1].first_row, 4u * 64);
  EXPECT_EQ(pieces[2].first_row, 6u * 64);
}

TEST_F(KeptCodesTest, MatricesWithoutCodesBecomeInt8AndANoteSaysSo) {
  Write([](const std::string& name) -> std::string_view {
    return name.contains("o_proj") || name.contains("layers.0.self_attn.v_proj") ? "" : "Q8_0";
  });
  const ConvertReport report = ConvertTo(kept_, {.weights = Scheme::kQc8w, .keeps_codes = true});
  ASSERT_FALSE(report.notes.empty());
  EXPECT_THAT(
      report.notes.back(),
      HasSubstr("3 of 8 matrices of the layers are rounded, because they are stored as F32"));
  const ModelFile kept = Unwrap(ModelFile::Open(kept_));
  EXPECT_EQ(kept.tensor(TensorRole::kQkvProj, 0).layout.scheme, Scheme::kQc8w);
  EXPECT_EQ(kept.tensor(TensorRole::kQkvProj, 1).layout.scheme, Scheme::kQ8_0);
  EXPECT_EQ(kept.tensor(TensorRole::kOProj, 1).layout.scheme, Scheme::kQc8w);
}

TEST_F(KeptCodesTest, TheTablesMayHaveSchemesOfTheirOwn) {
  support::CheckpointSpec spec = support::SpecOfBlocks();
  spec.config.tie_word_embeddings = true;
  Write([](const std::string&) { return "Q5_0"; }, spec);
  ConvertTo(kept_, {.weights = Scheme::kQc8w, .keeps_codes = true});
  const ModelFile tied = Unwrap(ModelFile::Open(kept_));
  EXPECT_EQ(tied.tensors().back().spec.role, TensorRole::kNorm) << "the head is the embedding";
  ConvertTo(kept_, {.weights = Scheme::kQc8w, .keeps_codes = true, .embedding = Scheme::kQc8w});
  const ModelFile apart = Unwrap(ModelFile::Open(kept_));
  EXPECT_EQ(apart.tensor(TensorRole::kEmbedTokens).layout.scheme, Scheme::kQc8w);
  EXPECT_EQ(apart.tensor(TensorRole::kLmHead).layout.scheme, Scheme::kQ5_0);
}

// Gemma's embedding is multiplied by the root of the hidden size.
TEST_F(KeptCodesTest, AFactorOfTheFamilyIsOneOfTheTensor) {
  const support::FamilyCheckpoint family = support::FamilyNamed("Gemma");
  support::FamilyGgufWriter writer(family.gguf_architecture, family.config_json);
  const support::GgmlBlock& type =
      *std::ranges::find(support::GgmlBlocks(), "Q8_0", &support::GgmlBlock::name);
  std::mt19937 random(9);
  for (const support::TensorShape& tensor : support::FamilyTensors(family)) {
    if (tensor.name != "model.embed_tokens.weight") {
      writer.Add({tensor.shape, support::FamilyValues(family, tensor)}, tensor.name);
      continue;
    }
    const std::vector<std::byte> blocks = support::RandomBlocks(
        *FindBlockFormat(Scheme::kQ8_0), tensor.shape[0] * tensor.shape[1] / type.elements, random);
    writer.writer().AddTensor("token_embd.weight", tensor.shape, type.number,
                              {reinterpret_cast<const char*>(blocks.data()), blocks.size()});
  }
  writer.Write(gguf_);
  ConvertTo(kept_, {.weights = Scheme::kQc8w, .keeps_codes = true});
  ConvertTo(f32_, {.weights = Scheme::kF32});
  const ModelFile kept = Unwrap(ModelFile::Open(kept_));
  const ModelFile f32 = Unwrap(ModelFile::Open(f32_));
  EXPECT_EQ(kept.tensor(TensorRole::kEmbedTokens).layout.factor, 8.0f);
  EXPECT_EQ(WeightsOf(kept, TensorRole::kEmbedTokens, kNoLayer),
            WeightsOf(f32, TensorRole::kEmbedTokens, kNoLayer));
}

TEST_F(KeptCodesTest, AreKeptOrChosen) {
  Write([](const std::string&) { return "Q4_0"; });
  ConvertOptions options = {.weights = Scheme::kQc8w, .keeps_codes = true};
  options.calibration = CalibrationOptions{.text = "text"};
  const auto calibrated = Convert(gguf_, kept_, options);
  ASSERT_FALSE(calibrated);
  EXPECT_EQ(calibrated.error().code(), ErrorCode::kUsage);
  options = {.keeps_codes = true};
  options.target = SizeTarget{.bits_per_weight = 5.0};
  const auto targeted = Convert(gguf_, kept_, options);
  ASSERT_FALSE(targeted);
  EXPECT_EQ(targeted.error().code(), ErrorCode::kUsage);
}

TEST_F(KeptCodesTest, AFileMayHaveNone) {
  Write([](const std::string&) { return "Q4_0"; });
  EXPECT_TRUE(Unwrap(HasCodesToKeep(gguf_)));
  Write([](const std::string&) { return ""; });
  EXPECT_FALSE(Unwrap(HasCodesToKeep(gguf_)));
}

}  // namespace
}  // namespace cria
