#include "converter/write/metadata.h"

#include <array>
#include <concepts>
#include <type_traits>
#include <utility>

#include "model/features.h"
#include "model_generated.h"

namespace cria {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr schema::Scheme ToSchema(Scheme scheme) {
  switch (scheme) {
    case Scheme::kF32:
      return schema::Scheme::F32;
    case Scheme::kQc8w:
      return schema::Scheme::Qc8w;
    case Scheme::kQb4w:
      return schema::Scheme::Qb4w;
    case Scheme::kQ4_0:
      return schema::Scheme::Q4_0;
    case Scheme::kQ4_1:
      return schema::Scheme::Q4_1;
    case Scheme::kQ5_0:
      return schema::Scheme::Q5_0;
    case Scheme::kQ5_1:
      return schema::Scheme::Q5_1;
    case Scheme::kQ8_0:
      return schema::Scheme::Q8_0;
    case Scheme::kQ2K:
      return schema::Scheme::Q2_K;
    case Scheme::kQ3K:
      return schema::Scheme::Q3_K;
    case Scheme::kQ4K:
      return schema::Scheme::Q4_K;
    case Scheme::kQ5K:
      return schema::Scheme::Q5_K;
    case Scheme::kQ6K:
      return schema::Scheme::Q6_K;
    case Scheme::kIq4Nl:
      return schema::Scheme::IQ4_NL;
    case Scheme::kIq4Xs:
      return schema::Scheme::IQ4_XS;
    case Scheme::kW2G64:
      return schema::Scheme::W2G64;
    case Scheme::kW3G64:
      return schema::Scheme::W3G64;
    case Scheme::kW4G64:
      return schema::Scheme::W4G64;
    case Scheme::kW5G64:
      return schema::Scheme::W5G64;
    case Scheme::kW6G64:
      return schema::Scheme::W6G64;
    case Scheme::kMxfp4:
      return schema::Scheme::MXFP4;
  }
  return {};
}

// TensorRoleTest compares the names, so that no number can mean another role.
static_assert(static_cast<int>(schema::TensorRole::MAX) + 1 == kNumTensorRoles);
constexpr schema::TensorRole ToSchema(TensorRole role) {
  return static_cast<schema::TensorRole>(role);
}

constexpr schema::TokenizerFamily ToSchema(TokenizerFamily family) {
  switch (family) {
    case TokenizerFamily::kSentencePieceBpe:
      return schema::TokenizerFamily::SentencePieceBpe;
    case TokenizerFamily::kByteLevelBpe:
      return schema::TokenizerFamily::ByteLevelBpe;
  }
  return {};
}

constexpr schema::RopeScalingType ToSchema(RopeScaling::Type type) {
  switch (type) {
    case RopeScaling::Type::kNone:
      return schema::RopeScalingType::None;
    case RopeScaling::Type::kLinear:
      return schema::RopeScalingType::Linear;
    case RopeScaling::Type::kLlama3:
      return schema::RopeScalingType::Llama3;
    case RopeScaling::Type::kDynamic:
      return schema::RopeScalingType::Dynamic;
    case RopeScaling::Type::kYarn:
      return schema::RopeScalingType::Yarn;
    case RopeScaling::Type::kLongrope:
      return schema::RopeScalingType::Longrope;
    case RopeScaling::Type::kProportional:
      return schema::RopeScalingType::Proportional;
  }
  return {};
}

constexpr schema::HiddenAct ToSchema(HiddenAct act) {
  switch (act) {
    case HiddenAct::kSilu:
      return schema::HiddenAct::Silu;
    case HiddenAct::kGeluTanh:
      return schema::HiddenAct::GeluTanh;
    case HiddenAct::kGelu:
      return schema::HiddenAct::Gelu;
    case HiddenAct::kRelu2:
      return schema::HiddenAct::Relu2;
    case HiddenAct::kXielu:
      return schema::HiddenAct::Xielu;
  }
  return {};
}

constexpr schema::NormPlacement ToSchema(NormPlacement placement) {
  switch (placement) {
    case NormPlacement::kBefore:
      return schema::NormPlacement::Before;
    case NormPlacement::kAfter:
      return schema::NormPlacement::After;
    case NormPlacement::kBeforeAndAfter:
      return schema::NormPlacement::BeforeAndAfter;
  }
  return {};
}

constexpr schema::ScoringFunc ToSchema(ScoringFunc function) {
  switch (function) {
    case ScoringFunc::kSoftmax:
      return schema::ScoringFunc::Softmax;
    case ScoringFunc::kSigmoid:
      return schema::ScoringFunc::Sigmoid;
  }
  return {};
}

constexpr schema::SectionKind ToSchema(FileSection section) {
  switch (section) {
    case FileSection::kConstants:
      return schema::SectionKind::Constants;
    case FileSection::kEmbedding:
      return schema::SectionKind::Embedding;
    case FileSection::kWeights:
      return schema::SectionKind::Weights;
  }
  return {};
}

// Readers cast the schema's numbers to the runtime's enumerations.
template <typename Ours, typename Schemas>
constexpr bool HaveTheSameNumbers(Schemas last) {
  for (int number = 0; number <= static_cast<int>(last); ++number) {
    // The analyzer does not see that the loop ends at the last enumerator.
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange)
    if (static_cast<int>(ToSchema(static_cast<Ours>(number))) != number) return false;
  }
  return true;
}
static_assert(static_cast<int>(schema::Scheme::MAX) + 1 == kNumSchemes);
static_assert(static_cast<int>(schema::SectionKind::MAX) + 1 == kNumFileSections);
static_assert(HaveTheSameNumbers<Scheme>(schema::Scheme::MAX));
static_assert(HaveTheSameNumbers<TokenizerFamily>(schema::TokenizerFamily::MAX));
static_assert(HaveTheSameNumbers<RopeScaling::Type>(schema::RopeScalingType::MAX));
static_assert(HaveTheSameNumbers<HiddenAct>(schema::HiddenAct::MAX));
static_assert(HaveTheSameNumbers<NormPlacement>(schema::NormPlacement::MAX));
static_assert(HaveTheSameNumbers<ScoringFunc>(schema::ScoringFunc::MAX));
static_assert(HaveTheSameNumbers<FileSection>(schema::SectionKind::MAX));
static_assert(sizeof(schema::Merge) == sizeof(Merge) && alignof(schema::Merge) == alignof(Merge));

schema::ByteRange ToSchema(const FileRange& range) { return {range.offset, range.bytes}; }

// The offset in a table's vtable of the field with this number.
constexpr flatbuffers::voffset_t FieldOffset(size_t number) {
  return static_cast<flatbuffers::voffset_t>((number + 2) * sizeof(flatbuffers::voffset_t));
}

template <typename T>
void AddField(FlatBufferBuilder& builder, size_t number, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    builder.AddElement(FieldOffset(number), static_cast<uint8_t>(value));
  } else if constexpr (std::same_as<T, bool>) {
    builder.AddElement<uint8_t>(FieldOffset(number), value);
  } else {
    builder.AddElement(FieldOffset(number), value);
  }
}
template <typename T>
void AddField(FlatBufferBuilder& builder, size_t number, Offset<T> value) {
  builder.AddOffset(FieldOffset(number), value);
}

// Adds the larger fields first, and of each size the last field first, as flatc's generated
// functions do. The order decides the bytes, and so the digest of a model.
Offset<schema::RopeScaling> BuildRopeScaling(FlatBufferBuilder& builder,
                                             const RopeScaling& scaling) {
  constexpr size_t kNumFields = std::tuple_size_v<decltype(kRopeScalingFields)>;
  // Written only if they are there, so that other models keep the digest that they had before.
  const bool has_lists = !scaling.short_factor.empty() || !scaling.long_factor.empty();
  std::array<Offset<flatbuffers::Vector<float>>, kNumFields> lists;
  [&]<size_t... kNumber>(std::index_sequence<kNumber...>) {
    const auto build = [&](const auto& value, auto& list) {
      if constexpr (std::same_as<decltype(value), const std::vector<float>&>) {
        list = builder.CreateVector(value);
      }
    };
    if (has_lists) {
      (build(scaling.*std::get<kNumber>(kRopeScalingFields).member, lists[kNumber]), ...);
    }
  }(std::make_index_sequence<kNumFields>());
  const auto start = builder.StartTable();
  const auto add = [&]<size_t kNumber>(size_t size) {
    constexpr const auto& kField = std::get<kNumber>(kRopeScalingFields);
    const auto& value = scaling.*kField.member;
    if constexpr (std::same_as<decltype(value), const std::vector<float>&>) {
      if (has_lists && size == sizeof(uint32_t)) AddField(builder, kNumber, lists[kNumber]);
    } else if (sizeof(value) == size) {
      if (kField.is_omitted_if_zero && value == std::remove_cvref_t<decltype(value)>{}) return;
      AddField(builder, kNumber, value);
    }
  };
  [&]<size_t... kBack>(std::index_sequence<kBack...>) {
    for (const size_t size : {sizeof(uint32_t), sizeof(uint8_t)}) {
      (add.template operator()<kNumFields - 1 - kBack>(size), ...);
    }
  }(std::make_index_sequence<kNumFields>());
  return Offset<schema::RopeScaling>(builder.EndTable(start));
}

Offset<schema::LayerKind> BuildLayerKind(FlatBufferBuilder& builder, const LayerKind& kind) {
  const auto rope_scaling = BuildRopeScaling(builder, kind.rope_scaling);
  const auto start = builder.StartTable();
  size_t number = 0;
  ForEachField(kLayerKindFields, [&]<typename T>(const ConfigField<LayerKind, T>& field) {
    if constexpr (std::same_as<T, RopeScaling>) {
      AddField(builder, number, rope_scaling);
    } else if (!field.is_omitted_if_zero || kind.*field.member != T{}) {
      AddField(builder, number, kind.*field.member);
    }
    ++number;
  });
  return Offset<schema::LayerKind>(builder.EndTable(start));
}

Offset<schema::Config> BuildConfig(FlatBufferBuilder& builder, const ModelConfig& config) {
  const auto architecture = builder.CreateString(config.architecture);
  const auto rope_scaling = BuildRopeScaling(builder, config.layer_kinds.front().rope_scaling);
  // Written only if layers differ, so that other models keep the digest that they had before.
  Offset<flatbuffers::Vector<Offset<schema::LayerKind>>> layer_kinds;
  Offset<flatbuffers::Vector<uint8_t>> kind_of_layer;
  if (config.layer_kinds.size() > 1) {
    std::vector<Offset<schema::LayerKind>> kinds;
    kinds.reserve(config.layer_kinds.size());
    for (const LayerKind& kind : config.layer_kinds) kinds.push_back(BuildLayerKind(builder, kind));
    layer_kinds = builder.CreateVector(kinds);
    kind_of_layer = builder.CreateVector(config.kind_of_layer);
  }
  Offset<flatbuffers::Vector<float>> xielu;
  if (!config.xielu.empty()) xielu = builder.CreateVector(config.xielu);
  const auto start = builder.StartTable();
  size_t number = 0;
  ForEachField(kModelConfigFields,
               [&]<typename Owner, typename T>(const ConfigField<Owner, T>& field) {
                 if constexpr (std::same_as<T, std::string>) {
                   AddField(builder, number, architecture);
                 } else if constexpr (std::same_as<T, RopeScaling>) {
                   AddField(builder, number, rope_scaling);
                 } else if constexpr (std::same_as<T, std::vector<LayerKind>>) {
                   AddField(builder, number, layer_kinds);
                 } else if constexpr (std::same_as<T, std::vector<uint8_t>>) {
                   AddField(builder, number, kind_of_layer);
                 } else if constexpr (std::same_as<T, std::vector<float>>) {
                   AddField(builder, number, xielu);
                 } else if (!field.is_omitted_if_zero || ValueOf(field, config) != T{}) {
                   AddField(builder, number, ValueOf(field, config));
                 }
                 ++number;
               });
  return Offset<schema::Config>(builder.EndTable(start));
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
  Offset<flatbuffers::Vector<uint32_t>> rstrip_ids;
  if (!vocabulary.rstrip_ids.empty()) {
    rstrip_ids = BuildVector<uint32_t>(builder, vocabulary.rstrip_ids);
  }
  schema::TokenizerBuilder fields(builder);
  fields.add_family(ToSchema(vocabulary.family));
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
  // Written only if needed, so that models without it keep the digest that they had before the
  // field.
  if (vocabulary.normalize_nfc) fields.add_normalize_nfc(true);
  if (vocabulary.dummy_prefix_unless_space) fields.add_dummy_prefix_unless_space(true);
  if (!vocabulary.rstrip_ids.empty()) fields.add_rstrip_ids(rstrip_ids);
  if (vocabulary.appended_token_id >= 0) {
    fields.add_appended_token_id(vocabulary.appended_token_id);
  }
  return fields.Finish();
}

schema::PoolingType ToSchema(std::optional<Pooling> pooling) {
  if (!pooling) return schema::PoolingType::Unknown;
  return *pooling == Pooling::kMean ? schema::PoolingType::Mean : schema::PoolingType::Last;
}

// A null offset, and so no field, if there is none.
Offset<schema::Reranking> BuildReranking(FlatBufferBuilder& builder,
                                         const std::optional<Reranking>& reranking) {
  if (!reranking) return {};
  const auto prompt = builder.CreateString(reranking->prompt);
  const auto weight = builder.CreateVector(reranking->weight.data(), reranking->weight.size());
  return schema::CreateReranking(builder, prompt, weight);
}

Offset<schema::Tensor> BuildTensor(FlatBufferBuilder& builder, const StoredTensor& tensor) {
  const schema::ByteRange data = ToSchema(tensor.data);
  const schema::ByteRange scales = ToSchema(tensor.scales);
  schema::TensorBuilder fields(builder);
  fields.add_role(ToSchema(tensor.spec.role));
  fields.add_layer(tensor.spec.layer);
  fields.add_scheme(ToSchema(tensor.layout.scheme));
  fields.add_output_channels(static_cast<uint32_t>(tensor.layout.output_channels));
  fields.add_input_channels(static_cast<uint32_t>(tensor.layout.input_channels));
  fields.add_padded_input_channels(static_cast<uint32_t>(tensor.layout.padded_input_channels));
  fields.add_block_size(static_cast<uint32_t>(tensor.layout.block_size));
  fields.add_data(&data);
  fields.add_scales(&scales);
  fields.add_checksum(tensor.checksum);
  // Written only if needed, as above.
  if (tensor.layout.factor != 1.0f) fields.add_factor(tensor.layout.factor);
  return fields.Finish();
}

}  // namespace

std::vector<std::byte> BuildMetadata(const ModelDescription& description, const FilePlan& plan) {
  FlatBufferBuilder builder(1 << 20);
  // Fields with the value zero are stored, too, so that the size does not depend on the values.
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
    sections.push_back(
        schema::CreateSection(builder, ToSchema(static_cast<FileSection>(i)), &range));
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
  ForEachField(kModelConfigFields, [&](const auto& field) {
    if (NeedsFeature(field, description.config)) add_feature(field.name);
  });
  if (!description.chat_template_source.empty()) add_feature(kJinjaFeature);
  if (description.vocabulary.normalize_nfc) add_feature(kNormalizeNfcFeature);
  if (description.vocabulary.dummy_prefix_unless_space) {
    add_feature(kDummyPrefixUnlessSpaceFeature);
  }
  if (!description.vocabulary.rstrip_ids.empty()) add_feature(kRstripIdsFeature);
  if (plan.tensors.empty()) add_feature(kVocabularyOnlyFeature);
  const auto required_features = builder.CreateVector(features);
  const auto section_table = builder.CreateVector(sections);
  const auto tensor_table = builder.CreateVector(tensors);
  const auto reranking = BuildReranking(builder, description.reranking);
  // f16_cache and pooling are written only if they are set, as above; the other fields are
  // references.
  builder.ForceDefaults(false);
  builder.Finish(
      schema::CreateModel(builder, producer, name, required_features, config, tokenizer,
                          chat_template, stop_token_ids, section_table, tensor_table,
                          description.prefers_f16_cache, ToSchema(description.pooling), reranking),
      schema::ModelIdentifier());
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace cria
