#include "converter/write/metadata.h"

#include "model/features.h"
#include "model_generated.h"

namespace cria {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// The schema's numbers are those of the runtime's enumerations.
static_assert(static_cast<int>(schema::Scheme::MAX) + 1 == kNumSchemes);
static_assert(static_cast<int>(schema::TensorRole::MAX) + 1 == kNumTensorRoles);
static_assert(static_cast<int>(schema::SectionKind::MAX) + 1 == kNumFileSections);
static_assert(static_cast<int>(schema::Scheme::Qb4w) == static_cast<int>(Scheme::kQb4w));
static_assert(static_cast<int>(schema::TensorRole::LmHead) ==
              static_cast<int>(TensorRole::kLmHead));
static_assert(static_cast<int>(schema::TensorRole::DownBias) ==
              static_cast<int>(TensorRole::kDownBias));
static_assert(static_cast<int>(schema::TokenizerFamily::ByteLevelBpe) ==
              static_cast<int>(TokenizerFamily::kByteLevelBpe));
static_assert(static_cast<int>(schema::RopeScalingType::Yarn) ==
              static_cast<int>(RopeScaling::Type::kYarn));
static_assert(sizeof(schema::Merge) == sizeof(Merge) && alignof(schema::Merge) == alignof(Merge));

template <typename To, typename From>
To SameNumber(From value) {
  return static_cast<To>(static_cast<int>(value));
}

schema::ByteRange ToSchema(const FileRange& range) { return {range.offset, range.bytes}; }

Offset<schema::Config> BuildConfig(FlatBufferBuilder& builder, const ModelConfig& config) {
  const auto architecture = builder.CreateString(config.architecture);
  const RopeScaling& scaling = config.rope_scaling;
  const auto rope_scaling = schema::CreateRopeScaling(
      builder, SameNumber<schema::RopeScalingType>(scaling.type), scaling.factor,
      scaling.low_freq_factor, scaling.high_freq_factor, scaling.original_max_position_embeddings,
      scaling.attention_factor, scaling.beta_fast, scaling.beta_slow, scaling.truncate);
  schema::ConfigBuilder fields(builder);
  fields.add_architecture(architecture);
  fields.add_hidden_size(config.hidden_size);
  fields.add_intermediate_size(config.intermediate_size);
  fields.add_num_hidden_layers(config.num_hidden_layers);
  fields.add_num_attention_heads(config.num_attention_heads);
  fields.add_num_key_value_heads(config.num_key_value_heads);
  fields.add_head_dim(config.head_dim);
  fields.add_vocab_size(config.vocab_size);
  fields.add_max_position_embeddings(config.max_position_embeddings);
  fields.add_rms_norm_eps(config.rms_norm_eps);
  fields.add_rope_theta(config.rope_theta);
  fields.add_rope_scaling(rope_scaling);
  fields.add_tie_word_embeddings(config.tie_word_embeddings);
  fields.add_sliding_window(config.sliding_window);
  fields.add_qkv_bias(config.qkv_bias);
  fields.add_o_bias(config.o_bias);
  fields.add_mlp_bias(config.mlp_bias);
  fields.add_qk_norm(config.qk_norm);
  return fields.Finish();
}

template <typename To, typename From>
auto BuildVector(FlatBufferBuilder& builder, std::span<const From> values) {
  static_assert(sizeof(To) == sizeof(From));
  return builder.CreateVector(reinterpret_cast<const To*>(values.data()), values.size());
}

Offset<schema::Tokenizer> BuildTokenizer(FlatBufferBuilder& builder, const Vocabulary& vocabulary) {
  const auto piece_bytes = BuildVector<uint8_t>(builder, vocabulary.piece_bytes);
  const auto piece_offsets = BuildVector<uint32_t>(builder, vocabulary.piece_offsets);
  const auto piece_types = BuildVector<uint8_t>(builder, vocabulary.piece_types);
  const auto sorted_ids = BuildVector<uint32_t>(builder, vocabulary.sorted_ids);
  const auto merge_offsets = BuildVector<uint32_t>(builder, vocabulary.merge_offsets);
  const auto merges = builder.CreateVectorOfStructs(
      reinterpret_cast<const schema::Merge*>(vocabulary.merges.data()), vocabulary.merges.size());
  std::vector<Offset<flatbuffers::String>> patterns;
  patterns.reserve(vocabulary.split_patterns.size());
  for (const std::string_view pattern : vocabulary.split_patterns) {
    patterns.push_back(builder.CreateString(pattern.data(), pattern.size()));
  }
  const auto split_patterns = builder.CreateVector(patterns);
  schema::TokenizerBuilder fields(builder);
  fields.add_family(SameNumber<schema::TokenizerFamily>(vocabulary.family));
  fields.add_piece_bytes(piece_bytes);
  fields.add_piece_offsets(piece_offsets);
  fields.add_piece_types(piece_types);
  fields.add_sorted_ids(sorted_ids);
  fields.add_merge_offsets(merge_offsets);
  fields.add_merges(merges);
  fields.add_split_patterns(split_patterns);
  fields.add_ignore_merges(vocabulary.ignore_merges);
  fields.add_add_dummy_prefix(vocabulary.add_dummy_prefix);
  fields.add_dummy_prefix_after_special(vocabulary.dummy_prefix_after_special);
  fields.add_remove_extra_whitespaces(vocabulary.remove_extra_whitespaces);
  fields.add_byte_fallback(vocabulary.byte_fallback);
  fields.add_add_bos_token(vocabulary.add_bos_token);
  fields.add_bos_token_id(vocabulary.bos_token_id);
  fields.add_unk_token_id(vocabulary.unk_token_id);
  fields.add_eos_token_id(vocabulary.eos_token_id);
  // Models without it keep the digest that they had before it came.
  if (vocabulary.normalize_nfc) fields.add_normalize_nfc(true);
  return fields.Finish();
}

Offset<schema::Tensor> BuildTensor(FlatBufferBuilder& builder, const StoredTensor& tensor) {
  const schema::ByteRange data = ToSchema(tensor.data);
  const schema::ByteRange scales = ToSchema(tensor.scales);
  schema::TensorBuilder fields(builder);
  fields.add_role(SameNumber<schema::TensorRole>(tensor.spec.role));
  fields.add_layer(tensor.spec.layer);
  fields.add_scheme(SameNumber<schema::Scheme>(tensor.layout.scheme));
  fields.add_output_channels(static_cast<uint32_t>(tensor.layout.output_channels));
  fields.add_input_channels(static_cast<uint32_t>(tensor.layout.input_channels));
  fields.add_padded_input_channels(static_cast<uint32_t>(tensor.layout.padded_input_channels));
  fields.add_block_size(static_cast<uint32_t>(tensor.layout.block_size));
  fields.add_data(&data);
  fields.add_scales(&scales);
  fields.add_checksum(tensor.checksum);
  return fields.Finish();
}

}  // namespace

std::vector<std::byte> BuildMetadata(const ModelDescription& description, const FilePlan& plan) {
  FlatBufferBuilder builder(1 << 20);
  // A field that happens to be zero takes its place all the same, so that the size is always one.
  builder.ForceDefaults(true);

  const auto producer = builder.CreateString(description.producer);
  const auto name = builder.CreateString(description.name);
  const auto config = BuildConfig(builder, description.config);
  const auto tokenizer = BuildTokenizer(builder, description.vocabulary);
  const auto source = builder.CreateString(description.chat_template_source.data(),
                                           description.chat_template_source.size());
  const auto chat_template = schema::CreateChatTemplate(builder, source);
  const auto stop_token_ids = BuildVector<int32_t>(builder, description.stop_token_ids);

  std::vector<Offset<schema::Section>> sections;
  for (int i = 0; i < kNumFileSections; ++i) {
    const schema::ByteRange range = ToSchema(plan.sections[i]);
    sections.push_back(schema::CreateSection(builder, SameNumber<schema::SectionKind>(i), &range));
  }
  std::vector<Offset<schema::Tensor>> tensors;
  tensors.reserve(plan.tensors.size());
  for (const PlannedTensor& tensor : plan.tensors) {
    tensors.push_back(BuildTensor(builder, tensor.stored));
  }
  std::vector<Offset<flatbuffers::String>> features;
  const auto add_feature = [&](std::string_view feature) {
    features.push_back(builder.CreateString(feature.data(), feature.size()));
  };
  for (const Feature& feature : kFeatures) {
    if (feature.is_used(description.config)) add_feature(feature.name);
  }
  if (!description.chat_template_source.empty()) add_feature(kJinjaFeature);
  if (description.vocabulary.normalize_nfc) add_feature(kNormalizeNfcFeature);
  if (plan.tensors.empty()) add_feature(kVocabularyOnlyFeature);
  const auto required_features = builder.CreateVector(features);
  const auto section_table = builder.CreateVector(sections);
  const auto tensor_table = builder.CreateVector(tensors);
  builder.Finish(schema::CreateModel(builder, producer, name, required_features, config, tokenizer,
                                     chat_template, stop_token_ids, section_table, tensor_table),
                 schema::ModelIdentifier());
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace cria
