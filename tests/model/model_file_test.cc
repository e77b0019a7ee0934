#include "model/model_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/temporary_file.h"
#include "model/config_fields.h"
#include "model/test_model_file.h"
#include "model_generated.h"

namespace cria {
namespace {

Result<ModelFile> OpenBytes(const std::vector<std::byte>& bytes) {
  // The mapping and the open file outlive the name.
  const TemporaryFile file(bytes);
  return ModelFile::Open(file.path());
}

std::vector<std::byte> ReadAll(const ModelFile& file, FileRange range) {
  std::vector<std::byte> bytes(range.bytes);
  EXPECT_TRUE(file.Read(range, bytes));
  return bytes;
}

void ExpectTensorsAsWritten(const ModelFile& file, const TestModelFile& written) {
  ASSERT_EQ(file.tensors().size(), written.tensors.size());
  for (size_t i = 0; i < written.tensors.size(); ++i) {
    const StoredTensor& expected = written.tensors[i];
    const StoredTensor& actual = file.tensor(expected.spec.role, expected.spec.layer);
    SCOPED_TRACE(expected.spec.Name());
    EXPECT_EQ(&actual, &file.tensors()[i]);
    EXPECT_EQ(actual.spec.Name(), expected.spec.Name());
    EXPECT_EQ(actual.layout.scheme, expected.layout.scheme);
    EXPECT_EQ(actual.layout.output_channels, expected.layout.output_channels);
    EXPECT_EQ(actual.layout.input_channels, expected.layout.input_channels);
    EXPECT_EQ(actual.layout.padded_input_channels, expected.layout.padded_input_channels);
    EXPECT_EQ(actual.layout.block_size, expected.layout.block_size);
    EXPECT_EQ(actual.data.offset, expected.data.offset);
    EXPECT_EQ(actual.data.bytes, expected.data.bytes);
    EXPECT_EQ(actual.scales.offset, expected.scales.offset);
    EXPECT_EQ(actual.scales.bytes, expected.scales.bytes);
    EXPECT_EQ(actual.checksum, expected.checksum);
    for (const TestModelFile::Piece& piece : written.payload) {
      if (piece.offset != actual.data.offset) continue;
      EXPECT_EQ(ReadAll(file, actual.data), piece.bytes);
      const auto mapping = file.Map(actual.data);
      ASSERT_TRUE(mapping);
      EXPECT_TRUE(std::ranges::equal(mapping->bytes(), piece.bytes));
    }
  }
}

TEST(ModelFileTest, ReadsEveryField) {
  TestModelFile written = MakeTestModelFile();
  written.producer = "cria-convert 9.8.7";
  written.name = "Tiny Llama";
  written.rope_scaling_type = 2;
  written.config.layer_kinds[0].rope_scaling = {RopeScaling::Type::kLlama3, 32.0f, 1.5f, 4.5f, 48};
  written.config.layer_kinds[0].sliding_window = 24;
  written.required_features = {"sliding_window"};
  written.tokenizer_family = 1;
  written.split_patterns = {"\\p{L}+", "\\s+"};
  written.chat_template_source = "{{ messages }}";
  written.normalize_nfc = true;
  written.dummy_prefix_unless_space = true;
  written.rstrip_ids = {1, 2};
  written.required_features = {"jinja", "normalize_nfc", "dummy_prefix_unless_space", "rstrip_ids"};
  written.stop_token_ids = {2, 7};
  const std::vector<std::byte> bytes = Serialize(written);
  const TemporaryFile temporary(bytes);
  const auto file = ModelFile::Open(temporary.path());
  ASSERT_TRUE(file) << file.error().message();

  EXPECT_EQ(file->path(), temporary.path());
  EXPECT_EQ(file->size_bytes(), bytes.size());
  EXPECT_EQ(file->metadata_bytes(), PreambleOf(bytes).metadata_bytes);
  EXPECT_EQ(file->digest(), PreambleOf(bytes).metadata_digest);
  EXPECT_EQ(file->producer(), written.producer);
  EXPECT_EQ(file->name(), written.name);
  EXPECT_EQ(file->chat_template_source(), written.chat_template_source);
  EXPECT_TRUE(std::ranges::equal(file->stop_token_ids(), written.stop_token_ids));

  const ModelConfig& config = file->config();
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.hidden_size, 8u);
  EXPECT_EQ(config.intermediate_size, 12u);
  EXPECT_EQ(config.num_hidden_layers, 2u);
  EXPECT_EQ(config.num_attention_heads, 4u);
  EXPECT_EQ(config.num_key_value_heads, 2u);
  EXPECT_EQ(config.head_dim, 2u);
  EXPECT_EQ(config.vocab_size, 8u);
  EXPECT_EQ(config.max_position_embeddings, 64u);
  EXPECT_EQ(config.rms_norm_eps, 1e-5f);
  EXPECT_EQ(config.layer_kinds[0].rope_theta, 10000.0f);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.layer_kinds[0].sliding_window, 24u);
  EXPECT_EQ(config.layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLlama3);
  EXPECT_EQ(config.layer_kinds[0].rope_scaling.factor, 32.0f);
  EXPECT_EQ(config.layer_kinds[0].rope_scaling.low_freq_factor, 1.5f);
  EXPECT_EQ(config.layer_kinds[0].rope_scaling.high_freq_factor, 4.5f);
  EXPECT_EQ(config.layer_kinds[0].rope_scaling.original_max_position_embeddings, 48u);

  const Vocabulary& vocabulary = file->vocabulary();
  EXPECT_EQ(vocabulary.family, TokenizerFamily::kByteLevelBpe);
  ASSERT_EQ(vocabulary.size(), 8u);
  EXPECT_EQ(vocabulary.piece(1), "<s>");
  EXPECT_EQ(vocabulary.piece(6), "ab");
  EXPECT_EQ(vocabulary.piece_types[2], PieceType::kControl);
  EXPECT_TRUE(std::ranges::equal(vocabulary.sorted_ids, written.sorted_ids));
  EXPECT_TRUE(std::ranges::equal(vocabulary.merge_offsets, written.merge_offsets));
  ASSERT_EQ(vocabulary.merges.size(), 1u);
  EXPECT_EQ(vocabulary.merges[0].right, 4u);
  EXPECT_EQ(vocabulary.merges[0].rank, 0u);
  EXPECT_EQ(vocabulary.merges[0].merged, 6u);
  EXPECT_TRUE(std::ranges::equal(vocabulary.split_patterns, written.split_patterns));
  EXPECT_TRUE(std::ranges::equal(vocabulary.rstrip_ids, written.rstrip_ids));
  EXPECT_TRUE(vocabulary.normalize_nfc);
  EXPECT_TRUE(vocabulary.ignore_merges);
  EXPECT_TRUE(vocabulary.add_dummy_prefix);
  EXPECT_TRUE(vocabulary.dummy_prefix_after_special);
  EXPECT_TRUE(vocabulary.dummy_prefix_unless_space);
  EXPECT_TRUE(vocabulary.remove_extra_whitespaces);
  EXPECT_TRUE(vocabulary.byte_fallback);
  EXPECT_TRUE(vocabulary.add_bos_token);
  EXPECT_EQ(vocabulary.bos_token_id, 1);
  EXPECT_EQ(vocabulary.unk_token_id, 0);
  EXPECT_EQ(vocabulary.eos_token_id, 2);

  ExpectTensorsAsWritten(*file, written);
  EXPECT_TRUE(file->VerifyPayload());
}

TEST(ModelFileTest, ReadsEverySchemeAndRopeScaling) {
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
    const TestModelFile written =
        MakeTestModelFile({.tied = false, .matrices = scheme, .embedding = scheme, .head = scheme});
    const auto file = OpenBytes(Serialize(written));
    ASSERT_TRUE(file) << file.error().message();
    EXPECT_EQ(file->config().layer_kinds[0].rope_scaling.type, RopeScaling::Type::kNone);
    EXPECT_FALSE(file->vocabulary().normalize_nfc);
    EXPECT_FALSE(file->vocabulary().dummy_prefix_unless_space);
    ExpectTensorsAsWritten(*file, written);
    EXPECT_TRUE(file->VerifyPayload());
  }
  TestModelFile linear = MakeTestModelFile();
  linear.rope_scaling_type = 1;
  linear.config.layer_kinds[0].rope_scaling.factor = 2.5f;
  const auto file = OpenBytes(Serialize(linear));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->config().layer_kinds[0].rope_scaling.type, RopeScaling::Type::kLinear);
  EXPECT_EQ(file->config().layer_kinds[0].rope_scaling.factor, 2.5f);
}

TEST(ModelFileTest, ReadsBiasesAndNormsOfHeads) {
  TestModelFile written = MakeTestModelFile({.matrices = Scheme::kQb4w, .biases_and_norms = true});
  written.required_features = {"qkv_bias", "o_bias", "mlp_bias", "qk_norm"};
  const auto file = OpenBytes(Serialize(written));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->config().qkv_bias);
  EXPECT_TRUE(file->config().o_bias);
  EXPECT_TRUE(file->config().mlp_bias);
  EXPECT_TRUE(file->config().qk_norm);
  ExpectTensorsAsWritten(*file, written);
  EXPECT_EQ(file->tensor(TensorRole::kQkvBias, 1).layout.input_channels, 16u);
  EXPECT_EQ(file->tensor(TensorRole::kKNorm, 1).layout.input_channels, 2u);
  EXPECT_EQ(file->tensor(TensorRole::kGateUpBias, 0).layout.input_channels, 24u);
  EXPECT_TRUE(file->VerifyPayload());
}

TEST(ModelFileTest, ReadsEveryFieldOfYarn) {
  TestModelFile written = MakeTestModelFile();
  written.rope_scaling_type = 4;
  written.config.layer_kinds[0].rope_scaling = {.factor = 3.0f,
                                                .original_max_position_embeddings = 48,
                                                .attention_factor = 1.5f,
                                                .beta_fast = 20.0f,
                                                .beta_slow = 2.0f,
                                                .truncate = false};
  const auto file = OpenBytes(Serialize(written));
  ASSERT_TRUE(file) << file.error().message();
  const RopeScaling& read = file->config().layer_kinds[0].rope_scaling;
  EXPECT_EQ(read.type, RopeScaling::Type::kYarn);
  EXPECT_EQ(read.factor, 3.0f);
  EXPECT_EQ(read.original_max_position_embeddings, 48u);
  EXPECT_EQ(read.attention_factor, 1.5f);
  EXPECT_EQ(read.beta_fast, 20.0f);
  EXPECT_EQ(read.beta_slow, 2.0f);
  EXPECT_FALSE(read.truncate);
}

// The kinds replace the fields that older versions have.
TEST(ModelFileTest, ReadsKindsOfLayers) {
  TestModelFile written = MakeTestModelFile();
  written.required_features = {"layer_kinds"};
  written.config.layer_kinds[0] = {.sliding_window = 7, .rope_theta = 500.0f};
  written.layer_kinds = {{.rope_theta = 1e6f},
                         {.sliding_window = 24,
                          .rope_theta = 1e4f,
                          .rope_scaling = {.type = RopeScaling::Type::kYarn,
                                           .factor = 2.0f,
                                           .original_max_position_embeddings = 48,
                                           .attention_factor = 1.5f,
                                           .truncate = false}}};
  written.kind_of_layer = {1, 0};
  const auto file = OpenBytes(Serialize(written));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->config().layer_kinds, written.layer_kinds);
  EXPECT_EQ(file->config().kind_of_layer, written.kind_of_layer);
  EXPECT_EQ(file->config().layer_kind(0), written.layer_kinds[1]);
  EXPECT_EQ(file->config().layer_kind(1), written.layer_kinds[0]);
  ExpectTensorsAsWritten(*file, written);
}

TEST(ModelFileTest, ReadsShortConvolutions) {
  TestModelFile written = MakeTestModelFile();
  written.config.conv_L_cache = 3;
  written.config.conv_bias = true;
  written.layer_kinds = {{.rope_theta = 1e6f, .no_rope = true, .short_conv = true},
                         {.rope_theta = 1e6f}};
  written.config.layer_kinds = {written.layer_kinds.front()};
  written.kind_of_layer = {1, 1};
  written.required_features = {"short_conv", "conv_L_cache", "conv_bias"};
  const auto unused = OpenBytes(Serialize(written));
  ASSERT_FALSE(unused);
  EXPECT_TRUE(unused.error().message().contains("no layer of layer_kinds[0]"));
  written.kind_of_layer = {1, 0};
  // The file has the tensors of attention.
  const auto file = OpenBytes(Serialize(written));
  ASSERT_FALSE(file);
  EXPECT_TRUE(file.error().message().contains("layers.1.conv_in_proj is missing"))
      << file.error().message();
}

TEST(ModelFileTest, ReadsLinearAttention) {
  TestModelFile written = MakeTestModelFile();
  ModelConfig& config = written.config;
  config.linear_conv_kernel_dim = 4;
  config.linear_key_head_dim = 2;
  config.linear_value_head_dim = 3;
  config.linear_num_key_heads = 2;
  config.linear_num_value_heads = 4;
  config.linear_tiled_value_heads = true;
  written.layer_kinds = {{.rope_theta = 1e6f, .no_rope = true, .linear_attention = true},
                         {.rope_theta = 1e6f}};
  config.layer_kinds = {written.layer_kinds.front()};
  written.kind_of_layer = {1, 0};
  written.required_features = {"linear_attention"};
  // The file has the tensors of attention.
  const auto file = OpenBytes(Serialize(written));
  ASSERT_FALSE(file);
  EXPECT_TRUE(file.error().message().contains("layers.1.linear_in_proj is missing"))
      << file.error().message();
}

TEST(ModelFileTest, ReadsMamba) {
  TestModelFile written = MakeTestModelFile();
  ModelConfig& config = written.config;
  config.mamba_d_conv = 4;
  config.mamba_d_state = 2;
  config.mamba_d_head = 3;
  config.mamba_n_heads = 4;
  config.mamba_n_groups = 2;
  config.mamba_conv_bias = true;
  config.mamba_proj_bias = true;
  written.layer_kinds = {{.rope_theta = 1e6f, .no_rope = true, .mamba = true},
                         {.rope_theta = 1e6f}};
  config.layer_kinds = {written.layer_kinds.front()};
  written.kind_of_layer = {1, 0};
  written.required_features = {"mamba"};
  // The file has the tensors of attention.
  const auto file = OpenBytes(Serialize(written));
  ASSERT_FALSE(file);
  EXPECT_TRUE(file.error().message().contains("layers.1.mamba_in_proj is missing"))
      << file.error().message();
}

TEST(ModelFileTest, ReadsTheFieldsOfFamilies) {
  TestModelFile written = MakeTestModelFile();
  ModelConfig& config = written.config;
  config.hidden_act = HiddenAct::kGeluTanh;
  config.attn_logit_softcapping = 50.0f;
  config.final_logit_softcapping = 30.0f;
  config.rotary_dim = 2;
  config.layer_kinds[0].no_rope = true;
  config.layer_kinds[0].rope_scaling = {.type = RopeScaling::Type::kLongrope,
                                        .original_max_position_embeddings = 16,
                                        .short_factor = {1.5f},
                                        .long_factor = {2.5f}};
  written.rope_scaling_type = static_cast<uint8_t>(RopeScaling::Type::kLongrope);
  written.required_features = {"hidden_act",
                               "norm_placement",
                               "attn_logit_softcapping",
                               "rotary_dim",
                               "joint_qk_norm",
                               "final_logit_softcapping",
                               "num_experts",
                               "num_experts_per_tok",
                               "moe_intermediate_size",
                               "norm_topk_prob",
                               "shared_expert_gate",
                               "no_rope",
                               "dense_mlp",
                               "shared_expert_intermediate_size"};
  const auto file = OpenBytes(Serialize(written));
  ASSERT_TRUE(file) << file.error().message();
  const ModelConfig& read = file->config();
  EXPECT_EQ(read.hidden_act, config.hidden_act);
  EXPECT_EQ(read.attn_logit_softcapping, 50.0f);
  EXPECT_EQ(read.final_logit_softcapping, 30.0f);
  EXPECT_EQ(read.rotary_dim, 2u);
  EXPECT_TRUE(read.layer_kinds[0].no_rope);
  EXPECT_EQ(read.layer_kinds[0].rope_scaling.short_factor, std::vector<float>{1.5f});
  EXPECT_EQ(read.layer_kinds[0].rope_scaling.long_factor, std::vector<float>{2.5f});

  config.hidden_act = static_cast<HiddenAct>(9);
  const auto unknown = OpenBytes(Serialize(written));
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().message().contains("hidden_act is 9, which this version"));
}

TEST(ModelFileTest, OneKindOfLayersNeedsNoList) {
  TestModelFile written = MakeTestModelFile();
  written.layer_kinds = {{.sliding_window = 24, .rope_theta = 1e6f}};
  const auto file = OpenBytes(Serialize(written));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->config().layer_kinds, written.layer_kinds);
  EXPECT_EQ(file->config().layer_kind(1).sliding_window, 24u);
}

TEST(ModelFileTest, ATiedHeadIsTheEmbeddingUnlessItIsStored) {
  const auto shared = OpenBytes(Serialize(MakeTestModelFile({.tied = true})));
  ASSERT_TRUE(shared);
  EXPECT_EQ(&shared->tensor(TensorRole::kLmHead), &shared->tensor(TensorRole::kEmbedTokens));

  const auto apart = OpenBytes(Serialize(MakeTestModelFile({.tied = true, .head = Scheme::kQb4w})));
  ASSERT_TRUE(apart) << apart.error().message();
  EXPECT_EQ(apart->tensor(TensorRole::kLmHead).layout.scheme, Scheme::kQb4w);
  EXPECT_EQ(apart->tensor(TensorRole::kEmbedTokens).layout.scheme, Scheme::kQc8w);
}

TEST(ModelFileTest, AVocabularyAloneHasNoWeights) {
  TestModelFile written = MakeTestModelFile();
  written.required_features = {"vocabulary_only"};
  const auto opened = OpenBytes(Serialize(written));
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().message().contains("but there are weights"))
      << opened.error().message();
}

TEST(ModelFileTest, StaysGoodWhenMoved) {
  auto opened = OpenBytes(Serialize(MakeTestModelFile()));
  ASSERT_TRUE(opened);
  const ModelFile moved = std::move(*opened);
  EXPECT_EQ(moved.name(), "tiny");
  EXPECT_EQ(moved.vocabulary().piece(6), "ab");
  EXPECT_EQ(moved.tensor(TensorRole::kNorm).spec.role, TensorRole::kNorm);
  EXPECT_TRUE(moved.VerifyPayload());
}

TEST(ModelFileTest, DigestsTellModelsApart) {
  TestModelFile written = MakeTestModelFile();
  const auto first = OpenBytes(Serialize(written));
  // The weights are part of the digest by their checksums.
  written.tensors[3].checksum ^= 1;
  const auto second = OpenBytes(Serialize(written));
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->digest(), second->digest());
}

TEST(ModelFileTest, VerifyPayloadFindsEveryFlippedWeightByte) {
  const TestModelFile written =
      MakeTestModelFile({.matrices = Scheme::kQb4w, .embedding = Scheme::kQc8w});
  const std::vector<std::byte> bytes = Serialize(written);
  for (const StoredTensor& tensor : written.tensors) {
    for (const FileRange range : {tensor.data, tensor.scales}) {
      if (range.bytes == 0) continue;
      for (const uint64_t at : {range.offset, range.offset + range.bytes - 1}) {
        std::vector<std::byte> damaged = bytes;
        damaged[at] ^= std::byte{1};
        const auto file = OpenBytes(damaged);
        ASSERT_TRUE(file) << "the payload is not read when a file is opened";
        const Status verified = file->VerifyPayload();
        ASSERT_FALSE(verified) << tensor.spec.Name() << " byte " << at;
        EXPECT_EQ(verified.error().code(), ErrorCode::kInvalidFile);
        EXPECT_NE(verified.error().message().find(tensor.spec.Name()), std::string::npos);
      }
    }
  }
}

TEST(ModelFileTest, VerifyPayloadReadsLargeTensorsInSlices) {
  TestModelFile written = MakeTestModelFile({.hidden_size = 65536, .matrices = Scheme::kQc8w});
  std::vector<std::byte> bytes = Serialize(written);
  const FileRange range = written.Find(TensorRole::kQkvProj, 1).data;
  ASSERT_EQ(range.bytes, size_t{1} << 20);
  const FileRange larger = written.Find(TensorRole::kGateUpProj, 1).data;
  ASSERT_GT(larger.bytes, size_t{1} << 20);
  const auto sound = OpenBytes(bytes);
  ASSERT_TRUE(sound) << sound.error().message();
  EXPECT_TRUE(sound->VerifyPayload());
  bytes[larger.offset + (size_t{1} << 20)] ^= std::byte{0x80};
  const auto damaged = OpenBytes(bytes);
  ASSERT_TRUE(damaged);
  EXPECT_FALSE(damaged->VerifyPayload());
}

// The reader finds a field by its place in the list.
template <typename Fields>
void ExpectNamesOfSchema(const Fields& fields, const flatbuffers::TypeTable* table) {
  size_t number = 0;
  ForEachField(fields, [&](const auto& field) {
    ASSERT_LT(number, table->num_elems);
    EXPECT_EQ(field.name, table->names[number]) << number;
    ++number;
  });
  EXPECT_EQ(number, table->num_elems) << "the schema has fields that config_fields.h has not";
}

TEST(ConfigFieldsTest, AreTheSchemasInItsOrder) {
  ExpectNamesOfSchema(kModelConfigFields, schema::ConfigTypeTable());
  ExpectNamesOfSchema(kLayerKindFields, schema::LayerKindTypeTable());
  ExpectNamesOfSchema(kRopeScalingFields, schema::RopeScalingTypeTable());
}

TEST(ConfigFieldsTest, AbsentFieldsMeanWhatTheSchemaSays) {
  TestModelFile written = MakeTestModelFile();
  written.rope_scaling_is_absent = true;
  written.config.layer_kinds[0].sliding_window = 0;
  const auto file = OpenBytes(Serialize(written));
  ASSERT_TRUE(file) << file.error().message();
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::CreateRopeScaling(builder));
  const auto& expected = *flatbuffers::GetRoot<schema::RopeScaling>(builder.GetBufferPointer());
  const RopeScaling& scaling = file->config().layer_kinds[0].rope_scaling;
  EXPECT_EQ(static_cast<int>(scaling.type), static_cast<int>(expected.type()));
  EXPECT_EQ(scaling.factor, expected.factor());
  EXPECT_EQ(scaling.low_freq_factor, expected.low_freq_factor());
  EXPECT_EQ(scaling.high_freq_factor, expected.high_freq_factor());
  EXPECT_EQ(scaling.original_max_position_embeddings, expected.original_max_position_embeddings());
  EXPECT_EQ(scaling.attention_factor, expected.attention_factor());
  EXPECT_EQ(scaling.beta_fast, expected.beta_fast());
  EXPECT_EQ(scaling.beta_slow, expected.beta_slow());
  EXPECT_EQ(scaling.truncate, expected.truncate());
  EXPECT_EQ(file->config().layer_kinds[0].sliding_window, 0u);
  EXPECT_FALSE(file->config().qkv_bias);
  EXPECT_EQ(file->config().layer_kinds.size(), 1u);
  EXPECT_TRUE(file->config().kind_of_layer.empty());
}

}  // namespace
}  // namespace cria
