#include "converter/meta/meta_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "converter/convert.h"
#include "model/model_file.h"
#include "support/files.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"
#include "support/torch_writer.h"
#include "text/tokenizer.h"

namespace cria {
namespace {

using nlohmann::json;
using support::StorageType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = i; j < i + 3; ++j) {
      bits = bits << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

class MetaCheckpointTest : public ::testing::Test {
 protected:
  // The vocabulary has 344 ranks and the 256 special tokens of Meta's program.
  static support::CheckpointSpec Spec() {
    support::CheckpointSpec spec = support::SpecGqa();
    spec.config.vocab_size = 600;
    // 2/3 of 4 * 64, rounded up to a multiple of 32.
    spec.config.intermediate_size = 192;
    return spec;
  }
  void Write(const support::CheckpointSpec& spec, size_t shards, bool has_embedding_rows = true) {
    std::filesystem::remove_all(folder_);
    support::WriteMetaCheckpoint(support::MakeModel(spec), spec.format.storage, shards,
                                 has_embedding_rows, folder_);
    const auto tokenizer = support::MakeByteLevelTokenizer(344 + support::kNumNamedSpecialTokens);
    std::string ranks;
    for (size_t i = 0; i < tokenizer.pieces.size(); ++i) {
      ranks += Base64(tokenizer.pieces[i]) + " " + std::to_string(i) + "\n";
    }
    support::WriteFile(folder_ / "tokenizer.model", ranks);
  }
  void EditParams(const json& changes) {
    json params = json::parse(support::ReadFile(folder_ / "params.json"));
    params.merge_patch(changes);
    support::WriteFile(folder_ / "params.json", params.dump());
  }
  void ExpectRefused(std::string_view reason) {
    const auto report = Convert(folder_, output_, {});
    ASSERT_FALSE(report) << reason;
    EXPECT_THAT(report.error().message(), HasSubstr(reason));
    EXPECT_FALSE(report.error().message().contains('\n'));
  }

  support::TemporaryDirectory directory_;
  std::filesystem::path folder_ = directory_.path() / "meta";
  std::filesystem::path output_ = directory_.path() / "out.cria";
};

TEST_F(MetaCheckpointTest, WeightsAreThoseOfHuggingFacesFiles) {
  for (const StorageType type : {StorageType::kF32, StorageType::kF16, StorageType::kBf16}) {
    support::CheckpointSpec spec = Spec();
    spec.format.storage = type;
    const auto hugging_face = directory_.path() / "hf";
    support::WriteHuggingFaceDirectory(support::MakeModel(spec), hugging_face, spec.format);
    ASSERT_TRUE(Convert(hugging_face, output_, {}));
    const auto expected = ModelFile::Open(output_.string());
    ASSERT_TRUE(expected);
    for (const size_t shards : {1, 2}) {
      for (const bool has_embedding_rows : {true, false}) {
        Write(spec, shards, has_embedding_rows);
        const auto report = Convert(folder_, output_, {});
        ASSERT_TRUE(report) << report.error().message();
        const auto converted = ModelFile::Open(output_.string());
        ASSERT_TRUE(converted) << converted.error().message();
        ASSERT_EQ(converted->tensors().size(), expected->tensors().size());
        for (size_t i = 0; i < expected->tensors().size(); ++i) {
          EXPECT_EQ(converted->tensors()[i].checksum, expected->tensors()[i].checksum)
              << expected->tensors()[i].spec.Name() << " of " << shards;
        }
      }
    }
  }
}

TEST_F(MetaCheckpointTest, TokenizerHasMetasSpecialTokens) {
  Write(Spec(), 1);
  ASSERT_TRUE(Convert(folder_, output_, {}));
  const auto model = ModelFile::Open(output_.string());
  ASSERT_TRUE(model);
  const Vocabulary& vocabulary = model->vocabulary();
  EXPECT_EQ(vocabulary.piece(344), "<|begin_of_text|>");
  EXPECT_EQ(vocabulary.piece(344 + 9), "<|eot_id|>");
  EXPECT_EQ(vocabulary.bos_token_id, 344);
  EXPECT_THAT(model->stop_token_ids(), ElementsAre(345, 352, 353));
  EXPECT_EQ(Tokenizer::Create(vocabulary)->Encode("the").value().front(), 344);
}

// Their special tokens would have the ids of other tokens.
TEST_F(MetaCheckpointTest, RefusesRanksThatWereCutShort) {
  Write(Spec(), 1);
  const std::string whole = support::ReadFile(folder_ / "tokenizer.model");
  const size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  const auto vocabulary_error = [&] {
    const auto converted = ConvertVocabulary(folder_, output_);
    return converted ? std::string() : converted.error().message();
  };
  support::WriteFile(folder_ / "tokenizer.model", whole.substr(0, last_line));
  ExpectRefused(
      "has 343 ranks, which with 256 special tokens are 599 tokens, but the model has 600");
  EXPECT_EQ(vocabulary_error(), "");  // params.json has -1.
  EditParams({{"vocab_size", 600}});
  EXPECT_THAT(vocabulary_error(), HasSubstr("has 343 ranks"));
  support::WriteFile(folder_ / "tokenizer.model", "");
  ExpectRefused("tokenizer.model: is empty");
  EXPECT_THAT(vocabulary_error(), HasSubstr("tokenizer.model: is empty"));
}

TEST_F(MetaCheckpointTest, ReadsWhatParamsSayOfRotaryFrequencies) {
  Write(Spec(), 1);
  const auto config = [&](const json& changes) {
    EditParams(changes);
    const auto checkpoint = OpenMetaCheckpoint(folder_);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message();
    return checkpoint->config;
  };
  EXPECT_EQ(config({{"max_seq_len", nullptr}}).max_position_embeddings, 8192u);
  const ModelConfig scaled = config({{"use_scaled_rope", true}, {"rope_theta", 5e5}});
  EXPECT_EQ(scaled.max_position_embeddings, 131072u);
  EXPECT_EQ(scaled.layer_kinds[0].rope_theta, 5e5f);
  EXPECT_EQ(scaled.layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLlama3);
  EXPECT_EQ(scaled.layer_kinds[0].rope_scaling.factor, 32.0f);
  EXPECT_EQ(config({{"rope_scaling_factor", 8}}).layer_kinds[0].rope_scaling.factor, 8.0f);
}

TEST_F(MetaCheckpointTest, RefusesParamsThatDoNotFit) {
  Write(Spec(), 1);
  EditParams({{"multiple_of", 256}});
  ExpectRefused("but params.json calls for");
  EditParams({{"multiple_of", 0}});
  ExpectRefused("multiple_of");
  EditParams({{"multiple_of", 32}, {"ffn_dim_multiplier", 1e30}});
  ExpectRefused("give no size");
  EditParams({{"ffn_dim_multiplier", "x"}});
  ExpectRefused("ffn_dim_multiplier");
  EditParams({{"ffn_dim_multiplier", nullptr}, {"moe", true}});
  ExpectRefused("moe is set");
}

TEST_F(MetaCheckpointTest, RefusesShardsThatDoNotFit) {
  Write(Spec(), 2);
  std::filesystem::copy_file(folder_ / "consolidated.01.pth", folder_ / "consolidated.02.pth");
  // Three halves of the embedding.
  ExpectRefused("are 600 tokens, but the model has 900");
  std::filesystem::remove(folder_ / "consolidated.02.pth");
  support::WriteTorchArchive({{"norm.weight", {64}, std::vector<float>(64)}}, StorageType::kF32,
                             folder_ / "consolidated.01.pth");
  ExpectRefused("is not in shard 1 as well");
  std::filesystem::remove(folder_ / "consolidated.01.pth");
  ExpectRefused("the vocabulary ends at 300");
  support::WriteTorchArchive({{"tok_embeddings.weight", {}, {1.0f}}}, StorageType::kF32,
                             folder_ / "consolidated.00.pth");
  ExpectRefused("\"tok_embeddings.weight\" has no rows");
  std::filesystem::remove(folder_ / "consolidated.00.pth");
  ExpectRefused("has no consolidated.00.pth");
  std::filesystem::create_symlink("gone", folder_ / "consolidated.00.pth");
  ExpectRefused("consolidated.00.pth: is a link to \"gone\"");
}

}  // namespace
}  // namespace cria
