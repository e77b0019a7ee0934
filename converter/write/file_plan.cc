#include "converter/write/file_plan.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "model/file_layout.h"

namespace cria {
namespace {

Scheme SchemeOf(const TensorSpec& spec, const TensorSchemes& schemes) {
  if (spec.is_always_f32()) return Scheme::kF32;
  if (spec.is_table()) return schemes.embedding;
  // All layers read the products of the matrix of per-layer inputs.
  if (spec.role == TensorRole::kLmHead || spec.role == TensorRole::kPerLayerModelProj) {
    return schemes.head;
  }
  // No text calibrates the layer that guesses tokens, and what it guesses wrong takes time.
  const bool is_of_experts = spec.num_parts > 1;
  if (spec.is_of_mtp && !is_of_experts && schemes.weights != Scheme::kF32) return Scheme::kQc8w;
  return schemes.weights;
}

FileSection SectionOf(const TensorSpec& spec) {
  if (spec.is_vector()) return FileSection::kConstants;
  return spec.is_table() ? FileSection::kEmbedding : FileSection::kWeights;
}

bool IsKept(const TensorSpec& spec, const TensorSchemes& schemes) {
  if (spec.is_always_f32()) return false;
  if (spec.is_table()) return schemes.keeps_embedding;
  if (spec.role == TensorRole::kLmHead || spec.role == TensorRole::kPerLayerModelProj) {
    return schemes.keeps_head;
  }
  return schemes.keeps_weights;
}

PlannedTensor PlannedTensorOf(const TensorSpec& spec, const TensorLayout& layout,
                              std::vector<MappedPart> parts) {
  return {.stored = {.spec = spec,
                     .layout = layout,
                     .data = {.bytes = layout.data_bytes()},
                     .scales = {.bytes = layout.scale_bytes()}},
          .section = SectionOf(spec),
          .parts = std::move(parts)};
}

// Neighbouring parts whose codes are in one format, with one factor.
struct KeptRows {
  Scheme scheme;
  float factor;
  std::vector<MappedPart> parts;
};

// The tensor with the codes of its parts, in pieces of such rows. Empty if they cannot be kept.
std::vector<PlannedTensor> KeptPieces(const MappedTensor& tensor, const TensorSchemes& schemes) {
  if (!IsKept(tensor.spec, schemes)) return {};
  std::vector<KeptRows> groups;
  for (const MappedPart& part : tensor.parts) {
    if (!CanKeepCodes(*part.source)) return {};
    const Scheme scheme = BlockFormatOf(part.source->type)->scheme;
    const float factor = part.source->factor;
    if (groups.empty() || groups.back().scheme != scheme || groups.back().factor != factor) {
      groups.push_back({scheme, factor, {}});
    }
    groups.back().parts.push_back(part);
  }
  if (groups.size() > tensor.spec.max_pieces()) return {};
  std::vector<PlannedTensor> pieces;
  size_t first_row = 0;
  for (KeptRows& group : groups) {
    TensorSpec spec = tensor.spec;
    spec.output_channels = 0;
    for (const MappedPart& part : group.parts) spec.output_channels += part.source->shape.front();
    TensorLayout layout = MakeTensorLayout(spec, group.scheme, 0);
    layout.factor = group.factor;
    pieces.push_back(PlannedTensorOf(spec, layout, std::move(group.parts)));
    pieces.back().stored.first_row = first_row;
    pieces.back().keeps_codes = true;
    first_row += spec.output_channels;
  }
  return pieces;
}

// Sets `range` to the next aligned offset and returns its end.
uint64_t Place(uint64_t end, FileRange& range) {
  if (range.bytes == 0) return end;
  range.offset = AlignUp(end, kTensorAlignment);
  return range.offset + range.bytes;
}

}  // namespace

FilePlan PlanTensors(std::vector<MappedTensor> tensors, const ModelConfig& config,
                     const TensorSchemes& schemes) {
  FilePlan plan;
  for (MappedTensor& tensor : tensors) {
    const TensorSpec spec = tensor.spec;
    std::vector<PlannedTensor> pieces = KeptPieces(tensor, schemes);
    if (pieces.empty()) {
      const TensorLayout layout =
          MakeTensorLayout(spec, SchemeOf(spec, schemes), schemes.block_size);
      pieces.push_back(PlannedTensorOf(spec, layout, std::move(tensor.parts)));
    }
    // The embedding and the head have the same shape.
    if (spec.role == TensorRole::kLmHead && config.tie_word_embeddings &&
        pieces.front().stored.layout == plan.tensors.front().stored.layout) {
      continue;
    }
    std::ranges::move(pieces, std::back_inserter(plan.tensors));
  }
  return plan;
}

void Apply(const TensorLayout& layout, PlannedTensor& tensor) {
  tensor.stored.layout = layout;
  tensor.stored.data.bytes = layout.data_bytes();
  tensor.stored.scales.bytes = layout.scale_bytes();
}

void PlaceTensors(uint64_t metadata_bytes, FilePlan& plan) {
  uint64_t end = sizeof(FilePreamble) + metadata_bytes + kMetadataRoom;
  for (int section = 0; section < kNumFileSections; ++section) {
    FileRange& range = plan.sections[section];
    range.offset = AlignUp(end, kSectionAlignment);
    end = range.offset;
    for (PlannedTensor& tensor : plan.tensors) {
      if (tensor.section != static_cast<FileSection>(section)) continue;
      end = Place(end, tensor.stored.data);
      end = Place(end, tensor.stored.scales);
    }
    range.bytes = end - range.offset;
  }
  plan.file_bytes = AlignUp(end + kTrailingSlackBytes, kTensorAlignment);
}

EncodedTensor ReserveCodes(const std::shared_ptr<ScratchFile>& file, const TensorLayout& layout) {
  const uint64_t offset = file->Reserve(layout.data_bytes() + layout.scale_bytes());
  return {.file = file, .data_offset = offset, .scale_offset = offset + layout.data_bytes()};
}

PlannedTensor* FindTensor(FilePlan& plan, TensorRole role, int layer) {
  const auto found = std::ranges::find_if(plan.tensors, [&](const PlannedTensor& tensor) {
    return tensor.stored.spec.role == role && tensor.stored.spec.layer == layer;
  });
  return found == plan.tensors.end() ? nullptr : &*found;
}

PlannedTensor& HeadOf(FilePlan& plan) {
  PlannedTensor* head = FindTensor(plan, TensorRole::kLmHead, kNoLayer);
  if (head == nullptr) head = FindTensor(plan, TensorRole::kEmbedTokens, kNoLayer);
  assert(head != nullptr);
  return *head;
}

}  // namespace cria
