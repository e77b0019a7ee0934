#include "model/model_file_reader.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/format.h"
#include "core/quotable.h"
#include "model/features.h"
#include "model/file_layout.h"
#include "model_generated.h"

namespace cria {
namespace {

// The schema's enumerations have the same numbers as the runtime's.
static_assert(static_cast<int>(schema::RopeScalingType::MAX) ==
              static_cast<int>(RopeScaling::Type::kProportional));
static_assert(static_cast<int>(schema::RopeScalingType::Llama3) ==
              static_cast<int>(RopeScaling::Type::kLlama3));

std::unexpected<Error> Malformed(std::string message) {
  return Fail(ErrorCode::kInvalidFile, std::move(message) + "; convert the checkpoint again");
}

std::string_view View(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : std::string_view(text->c_str(), text->size());
}

template <typename T, typename U>
std::span<const T> View(const flatbuffers::Vector<U>* vector) {
  static_assert(sizeof(T) == sizeof(U));
  return {reinterpret_cast<const T*>(vector->Data()), vector->size()};
}

// An element of FlatBuffers' vectors of structs is a pointer, but the data are the structs' bytes.
std::span<const Merge> ViewMerges(const flatbuffers::Vector<const schema::Merge*>& merges) {
  static_assert(sizeof(Merge) == sizeof(schema::Merge));
  return {reinterpret_cast<const Merge*>(merges.Data()), merges.size()};
}

// Reads the fields of a table by their numbers, which are their places in the list of fields.
class FieldReader {
 public:
  // Generated tables derive from Table in private.
  explicit FieldReader(const void* table)
      : table_(*static_cast<const flatbuffers::Table*>(table)) {}

  template <typename Fields, typename Owner>
  void ReadAll(const Fields& fields, Owner& owner) {
    ForEachField(fields, [&](const auto& field) {
      Read(field.absent, ValueOf(field, owner));
      offset_ += sizeof(flatbuffers::voffset_t);
    });
  }

 private:
  template <typename T>
  void Read(float absent, T& value) const {
    if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(table_.GetField<uint8_t>(offset_, 0));
    } else if constexpr (std::same_as<T, bool>) {
      value = table_.GetField<uint8_t>(offset_, absent != 0.0f) != 0;
    } else {
      value = table_.GetField<T>(offset_, static_cast<T>(absent));
    }
  }
  void Read(float /*absent*/, std::string& value) const {
    value = View(table_.GetPointer<const flatbuffers::String*>(offset_));
  }
  void Read(float /*absent*/, RopeScaling& value) const {
    const void* table = table_.GetPointer<const void*>(offset_);
    if (table != nullptr) FieldReader(table).ReadAll(kRopeScalingFields, value);
  }
  void Read(float /*absent*/, std::vector<LayerKind>& value) const {
    using Tables = flatbuffers::Vector<flatbuffers::Offset<schema::LayerKind>>;
    const auto* tables = table_.GetPointer<const Tables*>(offset_);
    if (tables == nullptr || tables->size() == 0) return;
    // Limited, because all entries may be the same bytes; ValidateConfig refuses more.
    const size_t count = std::min<size_t>(tables->size(), kMaxLayerKinds + 1);
    value.assign(count, {});
    for (size_t i = 0; i < count; ++i) {
      const auto index = static_cast<flatbuffers::uoffset_t>(i);
      FieldReader(tables->Get(index)).ReadAll(kLayerKindFields, value[i]);
    }
  }
  void Read(float /*absent*/, std::vector<uint8_t>& value) const {
    const auto* bytes = table_.GetPointer<const flatbuffers::Vector<uint8_t>*>(offset_);
    if (bytes != nullptr) value.assign(bytes->begin(), bytes->end());
  }
  void Read(float /*absent*/, std::vector<float>& value) const {
    const auto* numbers = table_.GetPointer<const flatbuffers::Vector<float>*>(offset_);
    if (numbers != nullptr) value.assign(numbers->begin(), numbers->end());
  }

  const flatbuffers::Table& table_;
  flatbuffers::voffset_t offset_ = 2 * sizeof(flatbuffers::voffset_t);  // The first field's.
};

FileRange ToRange(const schema::ByteRange* range) {
  if (range == nullptr) return {};
  return {range->offset(), range->bytes()};
}

}  // namespace

Status ModelFileReader::CheckFeatures(const schema::Model& metadata) {
  if (metadata.required_features() == nullptr) return {};
  for (const flatbuffers::String* stored : *metadata.required_features()) {
    const std::string_view feature = View(stored);
    if (feature == kVocabularyOnlyFeature) model_.is_vocabulary_only_ = true;
    if (IsKnownFeature(feature)) continue;
    return Fail(ErrorCode::kUnsupported,
                Format("required_features names \"{}\", which this version does not know; use "
                       "a newer cria",
                       Quotable(feature)));
  }
  return {};
}

Status ModelFileReader::Read() {
  const std::span<const std::byte> bytes = model_.metadata_.bytes();
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  if (!schema::VerifyModelBuffer(verifier)) {
    return Malformed("the metadata is not a valid FlatBuffer of the model schema");
  }
  const schema::Model& metadata = *schema::GetModel(data);
  CRIA_RETURN_IF_ERROR(CheckFeatures(metadata));
  model_.producer_ = View(metadata.producer());
  model_.name_ = View(metadata.name());
  CRIA_RETURN_IF_ERROR(ReadConfig(metadata));
  CRIA_RETURN_IF_ERROR(ReadVocabulary(metadata));
  CRIA_RETURN_IF_ERROR(ReadChatTemplate(metadata));
  if (model_.is_vocabulary_only_) return CheckNoTensors(metadata);
  CRIA_RETURN_IF_ERROR(ReadSections(metadata));
  return ReadTensors(metadata);
}

Status ModelFileReader::ReadConfig(const schema::Model& metadata) {
  ModelConfig& config = model_.config_;
  FieldReader(metadata.config()).ReadAll(kModelConfigFields, config);
  for (const LayerKind& kind : config.layer_kinds) {
    const auto type = static_cast<int>(kind.rope_scaling.type);
    if (type > static_cast<int>(schema::RopeScalingType::MAX)) {
      return Malformed(Format("config.rope_scaling.type is {}, which is not known", type));
    }
  }
  // ValidateVocabulary checks vocab_size, the only field of this configuration.
  if (model_.is_vocabulary_only_) return {};
  return ValidateConfig(config);
}

Status ModelFileReader::ReadVocabulary(const schema::Model& metadata) {
  const schema::Tokenizer& stored = *metadata.tokenizer();
  Vocabulary& vocabulary = model_.vocabulary_;
  switch (stored.family()) {
    case schema::TokenizerFamily::SentencePieceBpe:
      vocabulary.family = TokenizerFamily::kSentencePieceBpe;
      break;
    case schema::TokenizerFamily::ByteLevelBpe:
      vocabulary.family = TokenizerFamily::kByteLevelBpe;
      break;
    default:
      return Malformed(
          Format("tokenizer.family is {}, which is not known", static_cast<int>(stored.family())));
  }
  vocabulary.piece_bytes = View<uint8_t>(stored.piece_bytes());
  vocabulary.piece_offsets = View<uint32_t>(stored.piece_offsets());
  vocabulary.piece_types = View<PieceType>(stored.piece_types());
  vocabulary.sorted_ids = View<uint32_t>(stored.sorted_ids());
  vocabulary.merge_offsets = View<uint32_t>(stored.merge_offsets());
  vocabulary.merges = ViewMerges(*stored.merges());
  if (stored.split_patterns() != nullptr) {
    for (const flatbuffers::String* pattern : *stored.split_patterns()) {
      vocabulary.split_patterns.push_back(View(pattern));
    }
  }
  if (stored.rstrip_ids() != nullptr) {
    vocabulary.rstrip_ids = View<uint32_t>(stored.rstrip_ids());
  }
  vocabulary.normalize_nfc = stored.normalize_nfc();
  vocabulary.ignore_merges = stored.ignore_merges();
  vocabulary.add_dummy_prefix = stored.add_dummy_prefix();
  vocabulary.dummy_prefix_after_special = stored.dummy_prefix_after_special();
  vocabulary.dummy_prefix_unless_space = stored.dummy_prefix_unless_space();
  vocabulary.remove_extra_whitespaces = stored.remove_extra_whitespaces();
  vocabulary.byte_fallback = stored.byte_fallback();
  vocabulary.add_bos_token = stored.add_bos_token();
  vocabulary.bos_token_id = stored.bos_token_id();
  vocabulary.unk_token_id = stored.unk_token_id();
  vocabulary.eos_token_id = stored.eos_token_id();
  vocabulary.appended_token_id = stored.appended_token_id();
  if (vocabulary.size() != model_.config_.vocab_size) {
    return Malformed(Format("tokenizer.piece_types has {} entries, but config.vocab_size is {}",
                            vocabulary.size(), model_.config_.vocab_size));
  }
  return ValidateVocabulary(vocabulary);
}

Status ModelFileReader::ReadChatTemplate(const schema::Model& metadata) {
  model_.chat_template_source_ = View(metadata.chat_template()->source());
  model_.stop_token_ids_ = View<int32_t>(metadata.stop_token_ids());
  model_.prefers_f16_cache_ = metadata.f16_cache();
  CRIA_RETURN_IF_ERROR(ReadPooling(metadata));
  CRIA_RETURN_IF_ERROR(ReadReranking(metadata));
  for (const int32_t id : model_.stop_token_ids_) {
    if (id < 0 || static_cast<uint32_t>(id) >= model_.config_.vocab_size) {
      return Malformed(Format("stop_token_ids names {}, outside the vocabulary of {}", id,
                              model_.config_.vocab_size));
    }
  }
  return {};
}

Status ModelFileReader::ReadPooling(const schema::Model& metadata) {
  switch (metadata.pooling()) {
    case schema::PoolingType::Unknown:
      return {};
    case schema::PoolingType::Mean:
      model_.pooling_ = Pooling::kMean;
      return {};
    case schema::PoolingType::Last:
      model_.pooling_ = Pooling::kLast;
      return {};
  }
  return Malformed(Format("pooling is {}", static_cast<int>(metadata.pooling())));
}

Status ModelFileReader::ReadReranking(const schema::Model& metadata) {
  if (metadata.reranking() == nullptr) return {};
  const schema::Reranking& stored = *metadata.reranking();
  model_.reranking_ = {.prompt = View(stored.prompt()), .weight = View<float>(stored.weight())};
  return ValidateReranking(*model_.reranking_, model_.config_.hidden_size);
}

Status ModelFileReader::CheckNoTensors(const schema::Model& metadata) const {
  if (metadata.tensors()->size() == 0 && model_.packed_offset_ == 0) return {};
  return Malformed("required_features names \"vocabulary_only\", but there are weights");
}

Status ModelFileReader::ReadSections(const schema::Model& metadata) {
  // There are three kinds; the limit keeps the search for every tensor's section short.
  constexpr size_t kMaxSections = 16;
  if (metadata.sections()->size() > kMaxSections) {
    return Malformed(
        Format("sections has {} entries, more than {}", metadata.sections()->size(), kMaxSections));
  }
  uint64_t end = sizeof(FilePreamble) + model_.metadata_.bytes().size();
  for (const schema::Section* section : *metadata.sections()) {
    const FileRange range = ToRange(section->range());
    const uint64_t file_bytes = model_.portable_bytes_;
    if (range.offset % kSectionAlignment != 0 || range.offset < end || range.offset > file_bytes ||
        range.bytes > file_bytes - range.offset) {
      return Malformed(
          Format("sections: bytes {} + {} overlap, are not aligned, or lie outside "
                 "the file",
                 range.offset, range.bytes));
    }
    end = range.offset + range.bytes;
    sections_.push_back(range);
  }
  return {};
}

Status ModelFileReader::ReadPieces(const schema::Model& metadata, const TensorSpec& spec,
                                   size_t& next) {
  const auto& stored = *metadata.tensors();
  for (size_t row = 0, pieces = 0; row < spec.output_channels; ++pieces) {
    const schema::Tensor* const entry = next < stored.size() ? stored.Get(next) : nullptr;
    if (entry == nullptr || static_cast<int>(entry->role()) != static_cast<int>(spec.role) ||
        entry->layer() != spec.layer || pieces == spec.max_pieces()) {
      return Malformed(Format("tensors: {} has {} rows, but the configuration calls for {}",
                              spec.Name(), row, spec.output_channels));
    }
    ++next;
    StoredTensor tensor = {.spec = spec,
                           .layout = {.scheme = static_cast<Scheme>(entry->scheme()),
                                      .output_channels = entry->output_channels(),
                                      .input_channels = entry->input_channels(),
                                      .padded_input_channels = entry->padded_input_channels(),
                                      .block_size = entry->block_size(),
                                      .factor = entry->factor()},
                           .first_row = row,
                           .data = ToRange(entry->data()),
                           .scales = ToRange(entry->scales()),
                           .checksum = entry->checksum()};
    const size_t rows = tensor.layout.output_channels;
    // Only products of our own leave room for the other pieces.
    const bool is_piece = spec.max_pieces() > 1 && tensor.layout.block_format() != nullptr;
    if (is_piece && rows > 0 && rows <= spec.output_channels - row) {
      tensor.spec.output_channels = rows;
    }
    CRIA_RETURN_IF_ERROR(CheckLayout(tensor));
    tensor.layout = MakeTensorLayout(tensor.spec, tensor.layout.scheme, tensor.layout.block_size);
    tensor.layout.factor = entry->factor();
    CRIA_RETURN_IF_ERROR(CheckRange(tensor.data, tensor));
    CRIA_RETURN_IF_ERROR(CheckRange(tensor.scales, tensor));
    model_.tensors_.push_back(tensor);
    row += rows;
  }
  return {};
}

Status ModelFileReader::ReadTensors(const schema::Model& metadata) {
  const std::vector<TensorSpec> expected = ExpectedTensors(model_.config_);
  const auto& stored = *metadata.tensors();
  size_t next = 0;
  for (const TensorSpec& spec : expected) {
    const schema::Tensor* entry = next < stored.size() ? stored.Get(next) : nullptr;
    const bool matches = entry != nullptr &&
                         static_cast<int>(entry->role()) == static_cast<int>(spec.role) &&
                         entry->layer() == spec.layer;
    if (!matches) {
      const bool is_end =
          next == stored.size() ||
          static_cast<int>(entry->role()) == static_cast<int>(TensorRole::kMtpEmbeddingNorm);
      if (spec.role == TensorRole::kLmHead && model_.config_.tie_word_embeddings && is_end) {
        continue;
      }
      return Malformed(Format("tensors: {} is missing or out of order", spec.Name()));
    }
    CRIA_RETURN_IF_ERROR(ReadPieces(metadata, spec, next));
  }
  if (next != stored.size()) {
    return Malformed(Format("tensors: {} entries are more than the configuration calls for",
                            stored.size() - next));
  }
  CRIA_RETURN_IF_ERROR(CheckPackedOffset());
  return CheckNoOverlap();
}

// Packed weights replace only matrices: the other tensors must be before them.
Status ModelFileReader::CheckPackedOffset() const {
  const uint64_t offset = model_.packed_offset_;
  if (offset == 0) return {};
  const auto ends_behind = [offset](const FileRange& range) {
    return range.offset + range.bytes > offset;
  };
  for (const StoredTensor& tensor : model_.tensors_) {
    if (!tensor.spec.is_multiplied() && (ends_behind(tensor.data) || ends_behind(tensor.scales))) {
      return Malformed(
          Format("packed_offset is {}, but {} is after it", offset, tensor.spec.Name()));
    }
  }
  if (offset % kSectionAlignment != 0 || offset >= model_.file_.size_bytes()) {
    return Malformed(
        Format("packed_offset is {}, which is not a multiple of {} or is outside the file", offset,
               kSectionAlignment));
  }
  return {};
}

Status ModelFileReader::CheckLayout(const StoredTensor& tensor) const {
  const TensorLayout& layout = tensor.layout;
  const std::string name = tensor.spec.Name();
  if (static_cast<int>(layout.scheme) >= kNumSchemes) {
    return Fail(ErrorCode::kUnsupported,
                Format("tensors: {}.scheme is {}, which this version does not know; use a newer "
                       "cria",
                       name, static_cast<int>(layout.scheme)));
  }
  if (tensor.spec.is_always_f32() && layout.scheme != Scheme::kF32) {
    return Malformed(Format("tensors: {}.scheme is {}, but a {} must be f32", name,
                            SchemeName(layout.scheme),
                            tensor.spec.is_vector() ? "norm or bias" : "router"));
  }
  if (layout.output_channels != tensor.spec.output_channels ||
      layout.input_channels != tensor.spec.input_channels) {
    return Malformed(Format("tensors: {} is [{}, {}], but the configuration calls for [{}, {}]",
                            name, layout.output_channels, layout.input_channels,
                            tensor.spec.output_channels, tensor.spec.input_channels));
  }
  const auto misfit = [&] {
    return Malformed(
        Format("tensors: {} has block_size {} and padded_input_channels {}, which "
               "do not fit its scheme {} and its {} input channels",
               name, layout.block_size, layout.padded_input_channels, SchemeName(layout.scheme),
               layout.input_channels));
  };
  const BlockFormat* const format = layout.block_format();
  if (format != nullptr && layout.padded_input_channels % format->inputs != 0) return misfit();
  if (format == nullptr ? layout.factor != 1.0f : !std::isfinite(layout.factor)) {
    return Malformed(Format("tensors: {}.factor is {}, which its scheme {} does not have", name,
                            layout.factor, SchemeName(layout.scheme)));
  }
  const bool is_blockwise = layout.scheme == Scheme::kQb4w;
  if (is_blockwise && !std::ranges::contains(kBlockSizes, layout.block_size)) return misfit();
  // Only the layout that MakeTensorLayout gives for this block size is accepted, which limits
  // padding.
  const TensorLayout defined = MakeTensorLayout(tensor.spec, layout.scheme, layout.block_size);
  if (defined.block_size != layout.block_size ||
      defined.padded_input_channels != layout.padded_input_channels) {
    return misfit();
  }
  if (tensor.data.bytes != layout.data_bytes() || tensor.scales.bytes != layout.scale_bytes()) {
    return Malformed(Format(
        "tensors: {} has {} bytes of data and {} of scales, but its shape "
        "takes {} and {}",
        name, tensor.data.bytes, tensor.scales.bytes, layout.data_bytes(), layout.scale_bytes()));
  }
  return {};
}

Status ModelFileReader::CheckRange(FileRange range, const StoredTensor& tensor) const {
  if (range.bytes == 0) return {};
  const bool inside = std::ranges::any_of(sections_, [&](const FileRange& section) {
    return range.offset >= section.offset && range.offset - section.offset <= section.bytes &&
           range.bytes <= section.bytes - (range.offset - section.offset);
  });
  const uint64_t file_bytes = model_.portable_bytes_;
  if (!inside || range.offset % kTensorAlignment != 0 ||
      file_bytes - range.offset - range.bytes < kTrailingSlackBytes) {
    return Malformed(
        Format("tensors: {} lies at bytes {} + {}, outside every section, not aligned "
               "to {} bytes, or without the slack behind it",
               tensor.spec.Name(), range.offset, range.bytes, kTensorAlignment));
  }
  return {};
}

Status ModelFileReader::CheckNoOverlap() const {
  std::vector<FileRange> ranges;
  for (const StoredTensor& tensor : model_.tensors_) {
    ranges.push_back(tensor.data);
    if (tensor.scales.bytes != 0) ranges.push_back(tensor.scales);
  }
  std::ranges::sort(ranges, {}, &FileRange::offset);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].offset < ranges[i - 1].offset + ranges[i - 1].bytes) {
      return Malformed(Format("tensors: two of them share byte {} of the file", ranges[i].offset));
    }
  }
  return {};
}

}  // namespace cria
