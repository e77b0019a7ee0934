#include "model/test_model_file.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "core/numeric.h"
#include "model_generated.h"

namespace cria {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint32_t kVocabSize = 8;

void FillVocabulary(TestModelFile& file) {
  const std::vector<std::pair<std::string, PieceType>> pieces = {
      {"<unk>", PieceType::kUnknown}, {"<s>", PieceType::kControl}, {"</s>", PieceType::kControl},
      {"a", PieceType::kNormal},      {"b", PieceType::kNormal},    {" ", PieceType::kNormal},
      {"ab", PieceType::kNormal},     {"!", PieceType::kNormal}};
  file.piece_offsets = {0};
  for (const auto& [piece, type] : pieces) {
    file.piece_bytes += piece;
    file.piece_offsets.push_back(static_cast<uint32_t>(file.piece_bytes.size()));
    file.piece_types.push_back(static_cast<uint8_t>(type));
  }
  file.sorted_ids = {5, 7, 3, 6, 4};
  file.merge_offsets = {0, 0, 0, 0, 1, 1, 1, 1, 1};
  file.merges.push_back({.right = 4, .rank = 0, .merged = 6});
}

std::vector<std::byte> RandomData(const TensorLayout& layout, std::mt19937& random) {
  std::vector<std::byte> bytes(layout.data_bytes());
  if (layout.scheme == Scheme::kF32) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random);
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    for (std::byte& value : bytes) value = static_cast<std::byte>(random());
  }
  return bytes;
}

std::vector<std::byte> RandomScales(const TensorLayout& layout, std::mt19937& random) {
  std::vector<std::byte> bytes(layout.scale_bytes());
  std::uniform_real_distribution<float> uniform(0.01f, 0.1f);
  const size_t size = layout.scheme == Scheme::kQb4w ? sizeof(uint16_t) : sizeof(float);
  for (size_t i = 0; i < bytes.size(); i += size) {
    const float scale = uniform(random);
    const uint16_t half = FloatToBf16(scale);
    if (layout.scheme == Scheme::kQb4w) {
      std::memcpy(bytes.data() + i, &half, size);
    } else {
      std::memcpy(bytes.data() + i, &scale, size);
    }
  }
  return bytes;
}

// One section holds everything, right behind the metadata.
void PlaceTensors(TestModelFile& file) {
  std::mt19937 random(17);
  uint64_t end = kSectionAlignment;
  for (StoredTensor& tensor : file.tensors) {
    Checksum64 checksum;
    std::vector<std::byte> data = RandomData(tensor.layout, random);
    std::vector<std::byte> scales = RandomScales(tensor.layout, random);
    checksum.Update(data);
    checksum.Update(scales);
    tensor.checksum = checksum.Finish();
    tensor.data = {AlignUp(end, kTensorAlignment), data.size()};
    end = tensor.data.offset + data.size();
    file.payload.push_back({tensor.data.offset, std::move(data)});
    if (scales.empty()) continue;
    tensor.scales = {AlignUp(end, kTensorAlignment), scales.size()};
    end = tensor.scales.offset + scales.size();
    file.payload.push_back({tensor.scales.offset, std::move(scales)});
  }
  file.sections = {{kSectionAlignment, end - kSectionAlignment}};
  file.file_bytes = end + kTrailingSlackBytes;
}

schema::ByteRange ToSchema(FileRange range) { return {range.offset, range.bytes}; }

Offset<schema::RopeScaling> BuildRopeScaling(FlatBufferBuilder& builder, uint8_t type,
                                             const RopeScaling& scaling) {
  const auto list = [&](const std::vector<float>& factors) {
    return factors.empty() ? 0 : builder.CreateVector(factors);
  };
  const auto short_factor = list(scaling.short_factor);
  const auto long_factor = list(scaling.long_factor);
  return schema::CreateRopeScaling(
      builder, static_cast<schema::RopeScalingType>(type), scaling.factor, scaling.low_freq_factor,
      scaling.high_freq_factor, scaling.original_max_position_embeddings, scaling.attention_factor,
      scaling.beta_fast, scaling.beta_slow, scaling.truncate, short_factor, long_factor,
      scaling.partial_rotary_factor);
}

Offset<schema::Config> BuildConfig(FlatBufferBuilder& builder, const TestModelFile& file) {
  const ModelConfig& config = file.config;
  const LayerKind& first = config.layer_kinds[0];
  const auto rope_scaling =
      file.rope_scaling_is_absent
          ? schema::CreateRopeScaling(builder)
          : BuildRopeScaling(builder, file.rope_scaling_type, first.rope_scaling);
  std::vector<Offset<schema::LayerKind>> kinds;
  for (const LayerKind& kind : file.layer_kinds) {
    const auto type = static_cast<uint8_t>(kind.rope_scaling.type);
    kinds.push_back(schema::CreateLayerKind(builder, kind.sliding_window, kind.rope_theta,
                                            BuildRopeScaling(builder, type, kind.rope_scaling),
                                            kind.no_rope, kind.dense_mlp, kind.short_conv,
                                            kind.linear_attention, kind.global_head_dim,
                                            kind.num_global_key_value_heads, kind.kv_shared_layer,
                                            kind.use_double_wide_mlp, kind.mamba));
  }
  const auto layer_kinds = kinds.empty() ? 0 : builder.CreateVector(kinds);
  const auto kind_of_layer =
      file.kind_of_layer.empty() ? 0 : builder.CreateVector(file.kind_of_layer);
  const auto xielu = config.xielu.empty() ? 0 : builder.CreateVector(config.xielu);
  return schema::CreateConfig(
      builder, builder.CreateString(config.architecture), config.hidden_size,
      config.intermediate_size, config.num_hidden_layers, config.num_attention_heads,
      config.num_key_value_heads, config.head_dim, config.vocab_size,
      config.max_position_embeddings, config.rms_norm_eps, first.rope_theta, rope_scaling,
      config.tie_word_embeddings, first.sliding_window, config.qkv_bias, config.o_bias,
      config.mlp_bias, config.qk_norm, layer_kinds, kind_of_layer, config.rotated_residual,
      static_cast<schema::HiddenAct>(config.hidden_act),
      static_cast<schema::NormPlacement>(config.norm_placement), config.attn_logit_softcapping,
      config.final_logit_softcapping, config.rotary_dim, config.joint_qk_norm, config.num_experts,
      config.num_experts_per_tok, config.moe_intermediate_size, config.norm_topk_prob,
      config.shared_expert_intermediate_size, config.shared_expert_gate, first.no_rope,
      first.dense_mlp, first.short_conv, config.conv_L_cache, config.conv_bias,
      static_cast<schema::ScoringFunc>(config.scoring_func), config.use_expert_bias,
      config.use_attention_gate, config.attn_output_gate, first.linear_attention,
      config.linear_conv_kernel_dim, config.linear_key_head_dim, config.linear_value_head_dim,
      config.linear_num_key_heads, config.linear_num_value_heads, config.linear_tiled_value_heads,
      config.llama_4_scaling_beta, config.llama_4_scaling_positions, config.qk_norm_after_rope,
      config.ungated_mlp, xielu, first.global_head_dim, first.num_global_key_value_heads,
      first.kv_shared_layer, first.use_double_wide_mlp, config.v_norm,
      config.hidden_size_per_layer_input, config.layer_scalar, config.enable_moe_block, first.mamba,
      config.mamba_d_conv, config.mamba_d_state, config.mamba_d_head, config.mamba_n_heads,
      config.mamba_n_groups, config.mamba_conv_bias, config.mamba_proj_bias, config.attn_sinks,
      config.router_bias, config.experts_bias, config.swiglu_alpha, config.swiglu_limit);
}

Offset<schema::Tokenizer> BuildTokenizer(FlatBufferBuilder& builder, const TestModelFile& file) {
  std::vector<schema::Merge> merges;
  for (const Merge& merge : file.merges) merges.emplace_back(merge.right, merge.rank, merge.merged);
  const auto piece_bytes = builder.CreateVector(
      reinterpret_cast<const uint8_t*>(file.piece_bytes.data()), file.piece_bytes.size());
  const auto piece_offsets = builder.CreateVector(file.piece_offsets);
  const auto piece_types = builder.CreateVector(file.piece_types);
  const auto sorted_ids = builder.CreateVector(file.sorted_ids);
  const auto merge_offsets = builder.CreateVector(file.merge_offsets);
  const auto merge_table = builder.CreateVectorOfStructs(merges);
  const auto patterns = builder.CreateVectorOfStrings(file.split_patterns);
  const auto rstrip_ids = builder.CreateVector(file.rstrip_ids);
  return schema::CreateTokenizer(
      builder, static_cast<schema::TokenizerFamily>(file.tokenizer_family), piece_bytes,
      piece_offsets, piece_types, sorted_ids, merge_offsets, merge_table, patterns,
      /*ignore_merges=*/true, /*add_dummy_prefix=*/true, /*dummy_prefix_after_special=*/true,
      /*remove_extra_whitespaces=*/true, /*byte_fallback=*/true, file.add_bos_token,
      file.bos_token_id, file.unk_token_id, file.eos_token_id, file.normalize_nfc,
      file.dummy_prefix_unless_space, rstrip_ids);
}

Offset<schema::Tensor> BuildTensor(FlatBufferBuilder& builder, const StoredTensor& tensor) {
  const schema::ByteRange data = ToSchema(tensor.data);
  const schema::ByteRange scales = ToSchema(tensor.scales);
  const TensorLayout& layout = tensor.layout;
  return schema::CreateTensor(
      builder, static_cast<schema::TensorRole>(tensor.spec.role), tensor.spec.layer,
      static_cast<schema::Scheme>(layout.scheme), static_cast<uint32_t>(layout.output_channels),
      static_cast<uint32_t>(layout.input_channels),
      static_cast<uint32_t>(layout.padded_input_channels), static_cast<uint32_t>(layout.block_size),
      &data, tensor.scales.bytes == 0 && tensor.scales.offset == 0 ? nullptr : &scales,
      tensor.checksum, layout.factor);
}

std::vector<std::byte> BuildMetadata(const TestModelFile& file) {
  FlatBufferBuilder builder;
  std::vector<Offset<schema::Section>> sections;
  for (const FileRange& range : file.sections) {
    const schema::ByteRange bytes = ToSchema(range);
    sections.push_back(schema::CreateSection(builder, schema::SectionKind::Weights, &bytes));
  }
  std::vector<Offset<schema::Tensor>> tensors;
  for (const StoredTensor& tensor : file.tensors) tensors.push_back(BuildTensor(builder, tensor));
  const auto config = BuildConfig(builder, file);
  const auto tokenizer = BuildTokenizer(builder, file);
  const auto chat_template =
      schema::CreateChatTemplate(builder, builder.CreateString(file.chat_template_source));
  const auto producer = builder.CreateString(file.producer);
  const auto name = builder.CreateString(file.name);
  const auto features = builder.CreateVectorOfStrings(file.required_features);
  const auto stop_token_ids = builder.CreateVector(file.stop_token_ids);
  const auto section_table = builder.CreateVector(sections);
  const auto tensor_table = builder.CreateVector(tensors);
  Offset<schema::Reranking> reranking;
  if (!file.reranking_prompt.empty()) {
    const auto prompt = builder.CreateString(file.reranking_prompt);
    const auto weight = builder.CreateVector(file.reranking_weight);
    reranking = schema::CreateReranking(builder, prompt, weight);
  }
  builder.Finish(schema::CreateModel(builder, producer, name, features, config, tokenizer,
                                     chat_template, stop_token_ids, section_table, tensor_table,
                                     /*f16_cache=*/false, schema::PoolingType::Unknown, reranking),
                 schema::ModelIdentifier());
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

StoredTensor& TestModelFile::Find(TensorRole role, int layer) {
  return *std::ranges::find_if(tensors, [&](const StoredTensor& tensor) {
    return tensor.spec.role == role && tensor.spec.layer == layer;
  });
}

TestModelFile MakeTestModelFile(const TestModelOptions& options) {
  TestModelFile file;
  file.config = {.architecture = "LlamaForCausalLM",
                 .hidden_size = options.hidden_size,
                 .intermediate_size = 12,
                 .num_hidden_layers = 2,
                 .num_attention_heads = 4,
                 .num_key_value_heads = 2,
                 .head_dim = 2,
                 .vocab_size = kVocabSize,
                 .max_position_embeddings = 64,
                 .rms_norm_eps = 1e-5f,
                 .tie_word_embeddings = options.tied,
                 .qkv_bias = options.biases_and_norms,
                 .o_bias = options.biases_and_norms,
                 .mlp_bias = options.biases_and_norms,
                 .qk_norm = options.biases_and_norms,
                 .layer_kinds = {{.rope_theta = 10000.0f}}};
  FillVocabulary(file);
  for (const TensorSpec& spec : ExpectedTensors(file.config)) {
    Scheme scheme = options.matrices;
    if (spec.role == TensorRole::kEmbedTokens) scheme = options.embedding;
    if (spec.role == TensorRole::kLmHead) scheme = options.head;
    if (spec.is_vector()) scheme = Scheme::kF32;
    if (spec.role == TensorRole::kLmHead && options.tied && options.head == options.embedding) {
      continue;
    }
    file.tensors.push_back(
        {.spec = spec, .layout = MakeTensorLayout(spec, scheme, options.block_size)});
  }
  PlaceTensors(file);
  return file;
}

std::vector<std::byte> Serialize(const TestModelFile& file) {
  const std::vector<std::byte> metadata = BuildMetadata(file);
  std::vector<std::byte> bytes(file.file_bytes);
  bytes.resize(std::max(bytes.size(), sizeof(FilePreamble) + metadata.size()));
  std::ranges::copy(metadata, bytes.begin() + sizeof(FilePreamble));
  for (const TestModelFile::Piece& piece : file.payload) {
    std::ranges::copy(piece.bytes, bytes.begin() + static_cast<ptrdiff_t>(piece.offset));
  }
  SetPreamble(bytes, {.metadata_bytes = metadata.size(), .file_bytes = bytes.size()});
  Reseal(bytes);
  return bytes;
}

FilePreamble PreambleOf(const std::vector<std::byte>& file) {
  FilePreamble preamble;
  std::memcpy(&preamble, file.data(), sizeof preamble);
  return preamble;
}

void SetPreamble(std::vector<std::byte>& file, const FilePreamble& preamble) {
  FilePreamble sealed = preamble;
  sealed.preamble_checksum = PreambleChecksum(sealed);
  std::memcpy(file.data(), &sealed, sizeof sealed);
}

void Reseal(std::vector<std::byte>& file) {
  FilePreamble preamble = PreambleOf(file);
  preamble.metadata_digest = Digest128(
      std::span(file).subspan(sizeof(FilePreamble), static_cast<size_t>(preamble.metadata_bytes)));
  SetPreamble(file, preamble);
}

}  // namespace cria
