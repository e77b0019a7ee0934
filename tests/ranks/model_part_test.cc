#include "ranks/model_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/numeric.h"
#include "model/model_outline.h"
#include "ranks/tensor_slice.h"
#include "support/block_gguf.h"
#include "support/converted_model.h"
#include "support/emulation.h"
#include "support/temporary_directory.h"
#include "support/unwrap.h"
#include "weights/block_numbers.h"
#include "xnn/packing.h"

namespace cria::ranks {
namespace {

using support::ConvertedModel;

// A tensor's rows with their scales, read by any means.
struct Numbers {
  TensorLayout layout;
  std::vector<std::byte> data;
  std::vector<std::byte> scales;

  template <typename T>
  static T Take(const std::vector<std::byte>& bytes, size_t index) {
    T value;
    std::memcpy(&value, &bytes[index * sizeof(T)], sizeof(T));
    return value;
  }
  float At(size_t row, size_t column) const {
    const size_t index = row * layout.padded_input_channels + column;
    switch (layout.scheme) {
      case Scheme::kF32:
        return Take<float>(data, index);
      case Scheme::kQc8w:
        return Take<int8_t>(data, index) * Take<float>(scales, row);
      case Scheme::kQb4w: {
        const auto pair = static_cast<uint8_t>(data[index / 2]);
        const int value = index % 2 == 0 ? pair & 15 : pair >> 4;
        const size_t scale = row * layout.scales_per_row() + column / layout.block_size;
        return static_cast<float>(value - 8) * Bf16ToFloat(Take<uint16_t>(scales, scale));
      }
      default: {
        const BlockFormat& format = *layout.block_format();
        std::vector<float> block(format.inputs);
        const size_t first = row * layout.row_bytes() + column / format.inputs * format.bytes;
        DequantizeBlocks(format, &data[first], block);
        return block[column % format.inputs];
      }
    }
  }
};

Numbers ReadAll(const ModelFile& model, const StoredTensor& tensor) {
  Numbers numbers = {tensor.layout, std::vector<std::byte>(tensor.layout.data_bytes()),
                     std::vector<std::byte>(tensor.layout.scale_bytes())};
  if (tensor.part == nullptr) {
    Unwrap(model.Read(tensor.data, numbers.data));
    Unwrap(model.Read(tensor.scales, numbers.scales));
    return numbers;
  }
  // As packing does, which reads some rows at a time.
  constexpr size_t kRows = 7;
  const TensorLayout& layout = tensor.layout;
  for (size_t row = 0; row < layout.output_channels; row += kRows) {
    const size_t rows = std::min(kRows, layout.output_channels - row);
    Unwrap(tensor.part->Read(
        model, row, rows,
        std::span(numbers.data).subspan(row * layout.row_bytes(), rows * layout.row_bytes()),
        std::span(numbers.scales)
            .subspan(row * layout.row_scale_bytes(), rows * layout.row_scale_bytes())));
  }
  return numbers;
}

std::vector<size_t> Indices(const std::vector<Range>& ranges) {
  std::vector<size_t> indices;
  for (const Range& range : ranges) {
    for (size_t i = range.begin; i < range.end; ++i) indices.push_back(i);
  }
  return indices;
}

std::vector<size_t> AllIndices(size_t count) { return Indices({{0, count}}); }

// The rows and columns of a tensor that a share has, worked out once more.
std::pair<std::vector<size_t>, std::vector<size_t>> OwnedBy(const RankShare& share,
                                                            const ModelConfig& config,
                                                            const StoredTensor& whole) {
  const size_t dim = config.head_dim;
  const auto heads = [dim](const Range& range, size_t first_head) {
    return Range{(first_head + range.begin) * dim, (first_head + range.end) * dim};
  };
  const std::vector<size_t> qkv = Indices(
      {heads(share.query_heads, 0), heads(share.key_value_heads, config.num_attention_heads),
       heads(share.key_value_heads, config.num_attention_heads + config.num_key_value_heads)});
  // Rows of gate and up for one expert after another.
  const auto gate_up_of = [](const Range& channels, size_t width, size_t num_experts) {
    std::vector<size_t> indices;
    for (size_t first = 0; first < 2 * num_experts * width; first += width) {
      for (const size_t channel : Indices({channels})) indices.push_back(first + channel);
    }
    return indices;
  };
  // Channels of each of so many vectors of the hidden size, which follow one another.
  const auto conv_parts = [&](size_t num_vectors) {
    std::vector<size_t> indices;
    for (size_t i = 0; i < num_vectors; ++i) {
      for (const size_t channel : Indices({share.conv_channels})) {
        indices.push_back(i * config.hidden_size + channel);
      }
    }
    return indices;
  };
  const std::vector<size_t> gate_up = gate_up_of(share.channels, config.intermediate_size, 1);
  const std::vector<size_t> rows = AllIndices(whole.layout.output_channels);
  const std::vector<size_t> columns = AllIndices(whole.layout.input_channels);
  switch (whole.spec.role) {
    case TensorRole::kQkvProj:
      return {qkv, columns};
    case TensorRole::kQkvBias:
      return {rows, qkv};
    case TensorRole::kAttentionGate:
      return {Indices({share.query_heads}), columns};
    case TensorRole::kOProj:
      return {rows, Indices({heads(share.query_heads, 0)})};
    case TensorRole::kGateUpProj:
      return {gate_up, columns};
    case TensorRole::kGateUpBias:
      return {rows, gate_up};
    case TensorRole::kDownProj:
      return {rows, Indices({share.channels})};
    case TensorRole::kExpertsGateUpProj:
      return {gate_up_of(share.expert_channels, config.moe_intermediate_size, config.num_experts),
              columns};
    case TensorRole::kExpertsGateUpBias:
      return {rows,
              gate_up_of(share.expert_channels, config.moe_intermediate_size, config.num_experts)};
    case TensorRole::kAttnSinks:
      return {rows, Indices({share.query_heads})};
    case TensorRole::kExpertsDownProj:
      return {rows, Indices({share.expert_channels})};
    case TensorRole::kSharedExpertGateUpProj:
      return {gate_up_of(share.shared_expert_channels, config.shared_expert_intermediate_size, 1),
              columns};
    case TensorRole::kSharedExpertDownProj:
      return {rows, Indices({share.shared_expert_channels})};
    case TensorRole::kQNorm:
      if (!config.joint_qk_norm) return {rows, columns};
      return {rows, Indices({heads(share.query_heads, 0)})};
    case TensorRole::kKNorm:
      if (!config.joint_qk_norm) return {rows, columns};
      return {rows, Indices({heads(share.key_value_heads, 0)})};
    case TensorRole::kLmHead:
      return {Indices({share.vocabulary}), columns};
    case TensorRole::kConvInProj:
      return {conv_parts(3), columns};
    case TensorRole::kConvInBias:
      return {rows, conv_parts(3)};
    case TensorRole::kConvWeight:
      return {rows, conv_parts(config.conv_L_cache)};
    case TensorRole::kConvBias:
    case TensorRole::kConvOutProj:
      return {rows, conv_parts(1)};
    default:
      return {rows, columns};
  }
}

class PartsOfModels : public testing::TestWithParam<Scheme> {};

TEST_P(PartsOfModels, HaveTheirRowsAndColumns) {
  const ConvertOptions conversion = {.weights = GetParam(), .block_size = 64};
  // Heads of the second one have 10 channels; the third one's channels are no multiples of 32. The
  // others are mixtures, one with dense layers and a shared expert, one with joint norms, two with
  // short convolutions, one of which has biases, and one with sinks and biases of experts.
  const ConvertedModel models[] = {
      ConvertedModel(support::SpecBiases(), conversion),
      ConvertedModel(support::SpecOddHeadDim(), conversion),
      ConvertedModel(support::SpecPadded(), conversion),
      ConvertedModel(support::FamilyNamed("Qwen2MoeDenseLayers"), conversion),
      ConvertedModel(support::FamilyNamed("Olmoe"), conversion),
      ConvertedModel(support::FamilyNamed("Lfm2Biases"), conversion),
      ConvertedModel(support::FamilyNamed("Lfm3"), conversion),
      ConvertedModel(support::FamilyNamed("GptOss"), conversion)};
  std::set<std::string_view> cut_roles;
  std::set<std::string_view> roles_in_parts;
  for (const ConvertedModel& converted : models) {
    // What is divided does not depend on the processor.
    if (support::IsEmulated() && &converted != &models[3]) continue;
    const ModelFile whole = converted.Open();
    for (const std::vector<double>& weights :
         {std::vector<double>{1, 1}, {3, 1}, std::vector<double>(4, 1.0)}) {
      const auto shares = Divide(whole.config(), ColumnBlocks::Of(whole), weights);
      if (!shares) continue;  // Blocks of int4 divide less often.
      for (size_t rank = 0; rank < weights.size(); ++rank) {
        const RankShare& share = (*shares)[rank];
        ModelFile part = converted.Open();
        Unwrap(ModelPart::Take(share, rank, part));
        for (const StoredTensor& tensor : whole.tensors()) {
          const auto [rows, columns] = OwnedBy(share, whole.config(), tensor);
          const Numbers expected = ReadAll(whole, tensor);
          const Numbers found = ReadAll(part, part.tensor(tensor.spec.role, tensor.spec.layer));
          ASSERT_EQ(found.layout.output_channels, rows.size()) << tensor.spec.Name();
          ASSERT_EQ(found.layout.input_channels, columns.size()) << tensor.spec.Name();
          const TensorRoleRow& role = RowOf(tensor.spec.role);
          EXPECT_NE(role.ranks_have, RanksHave::kNothing) << role.name;
          if (role.ranks_have == RanksHave::kParts) roles_in_parts.insert(role.name);
          if (found.layout.output_channels < expected.layout.output_channels ||
              found.layout.input_channels < expected.layout.input_channels) {
            cut_roles.insert(role.name);
          }
          for (size_t row = 0; row < rows.size(); ++row) {
            for (size_t column = 0; column < columns.size(); ++column) {
              ASSERT_EQ(found.At(row, column), expected.At(rows[row], columns[column]))
                  << tensor.spec.Name() << ", rank " << rank << " of " << weights.size();
            }
          }
        }
      }
    }
  }
  // TensorSlice::Of knows the parts of each of these roles.
  EXPECT_EQ(cut_roles, roles_in_parts);
}

INSTANTIATE_TEST_SUITE_P(Schemes, PartsOfModels,
                         testing::Values(Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w,
                                         Scheme::kW4G64),
                         [](const auto& test) { return std::string(SchemeName(test.param)); });

// Every rank has rows of a tied head, and the whole embedding table.
TEST(ModelPart, ATiedHeadIsDivided) {
  const ConvertedModel converted(support::SpecTied(), {.weights = Scheme::kQc8w});
  const ModelFile whole = converted.Open();
  const auto shares = Unwrap(Divide(whole.config(), ColumnBlocks::Of(whole), {{1, 1}}));
  ModelFile part = converted.Open();
  Unwrap(ModelPart::Take(shares[1], 1, part));
  EXPECT_EQ(part.tensor(TensorRole::kEmbedTokens).layout,
            whole.tensor(TensorRole::kEmbedTokens).layout);
  const Numbers table = ReadAll(whole, whole.tensor(TensorRole::kEmbedTokens));
  const Numbers head = ReadAll(part, part.tensor(TensorRole::kLmHead));
  ASSERT_EQ(head.layout.output_channels, shares[1].vocabulary.size());
  for (size_t row = 0; row < shares[1].vocabulary.size(); ++row) {
    EXPECT_EQ(head.At(row, 5), table.At(shares[1].vocabulary.begin + row, 5));
  }
}

TEST(ModelPart, MatricesInPiecesAreRefused) {
  const support::TemporaryDirectory directory;
  const std::filesystem::path gguf = directory.path() / "model.gguf";
  reference::ReferenceModel reference = support::MakeModel(support::SpecOfBlocks());
  support::WriteBlockGguf(
      gguf, [](const std::string& name) { return name.contains("v_proj") ? "Q8_0" : "Q4_0"; },
      reference);
  const support::ConvertedModel model(gguf, {.weights = Scheme::kQc8w, .keeps_codes = true});
  ModelFile whole = model.Open();
  const auto shares = Unwrap(Divide(whole.config(), ColumnBlocks::Of(whole), {{1, 1}}));
  const Status taken = ModelPart::Take(shares[0], 0, whole);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(taken.error().message().find("in different formats"), std::string::npos);
}

TEST(ModelPart, EachShareIsPackedByItself) {
  const ConvertedModel converted;
  const ModelFile whole = converted.Open();
  std::vector<Digest> digests = {whole.digest()};
  for (const std::vector<double>& weights : {std::vector<double>{1, 1}, {3, 1}}) {
    const auto shares = Unwrap(Divide(whole.config(), ColumnBlocks::Of(whole), weights));
    for (size_t rank = 0; rank < 2; ++rank) {
      ModelFile part = converted.Open();
      Unwrap(ModelPart::Take(shares[rank], rank, part));
      EXPECT_FALSE(std::ranges::contains(digests, part.packing_digest())) << rank;
      digests.push_back(part.packing_digest());
      EXPECT_EQ(part.digest(), whole.digest());
    }
  }
}

uint64_t PackedBytesOf(const ModelFile& model) {
  const std::vector<uint64_t> bytes = Unwrap(xnn::PackedBytes(OutlineOf(model).matrices));
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

// At most so many of these bytes are unused, because experts of a whole model begin at pages.
uint64_t MaxPaddingOf(const ModelFile& model) {
  uint64_t bytes = 0;
  for (const TensorLayout& layout : OutlineOf(model).matrices) {
    if (layout.num_parts > 1) bytes += layout.num_parts * kSectionAlignment;
  }
  return bytes;
}

void ExpectHardlyLarger(const ConvertedModel& converted, size_t num_ranks) {
  const ModelFile whole = converted.Open();
  const auto shares =
      Unwrap(Divide(whole.config(), ColumnBlocks::Of(whole), std::vector<double>(num_ranks, 1.0)));
  uint64_t bytes = 0;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    ModelFile part = converted.Open();
    Unwrap(ModelPart::Take(shares[rank], rank, part));
    bytes += PackedBytesOf(part);
  }
  EXPECT_LT(static_cast<double>(bytes), 1.03 * static_cast<double>(PackedBytesOf(whole)))
      << SchemeName(whole.tensor(TensorRole::kQkvProj, 0).layout.scheme) << ", " << num_ranks
      << " ranks";
  EXPECT_GE(bytes + MaxPaddingOf(whole), PackedBytesOf(whole));
}

TEST(ModelPart, PartsTogetherAreHardlyLargerThanTheWhole) {
  support::CheckpointSpec spec = support::SpecGqa();
  spec.config.hidden_size = 256;
  spec.config.num_attention_heads = 24;
  spec.config.num_key_value_heads = 12;
  spec.config.head_dim = 64;
  spec.config.intermediate_size = 1536;
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
    const ConvertedModel converted(spec, {.weights = scheme});
    for (const size_t num_ranks : {2, 3, 4, 6}) ExpectHardlyLarger(converted, num_ranks);
  }
}

// A mixture whose experts have `channels`: so many that the router is a small part of the weights.
ConvertedModel MixtureOf(size_t num_experts, size_t channels) {
  support::FamilyCheckpoint family = support::WideMixture();
  nlohmann::json config = nlohmann::json::parse(family.config_json);
  config.update({{"hidden_size", 512},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 24},
                 {"num_key_value_heads", 12},
                 {"head_dim", 64},
                 {"intermediate_size", 1536},
                 {"moe_intermediate_size", channels},
                 {"num_experts", num_experts},
                 {"num_experts_per_tok", 1},
                 {"shared_expert_intermediate_size", channels}});
  family.config_json = config.dump();
  return ConvertedModel(family, {.weights = Scheme::kQb4w});
}

TEST(ModelPart, PartsOfMixturesTogetherAreHardlyLargerThanTheWhole) {
  const ConvertedModel few = MixtureOf(2, 1536);
  for (const size_t num_ranks : {2, 3, 4, 6}) ExpectHardlyLarger(few, num_ranks);
  const ConvertedModel many = MixtureOf(16, 768);
  for (const size_t num_ranks : {2, 3, 4}) ExpectHardlyLarger(many, num_ranks);
}

}  // namespace
}  // namespace cria::ranks
