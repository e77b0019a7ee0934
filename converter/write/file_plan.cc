#include "converter/write/file_plan.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "model/file_layout.h"

namespace cria {
namespace {

Scheme SchemeOf(const TensorSpec& spec, const TensorSchemes& schemes) {
  if (spec.is_always_f32()) return Scheme::kF32;
  if (spec.role == TensorRole::kEmbedTokens) return schemes.embedding;
  if (spec.role == TensorRole::kLmHead) return schemes.head;
  return schemes.weights;
}

FileSection SectionOf(const TensorSpec& spec) {
  if (spec.is_vector()) return FileSection::kConstants;
  return spec.role == TensorRole::kEmbedTokens ? FileSection::kEmbedding : FileSection::kWeights;
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
    const TensorSpec& spec = tensor.spec;
    // The embedding and the head have the same shape, so equal schemes mean equal layouts.
    if (spec.role == TensorRole::kLmHead && config.tie_word_embeddings &&
        schemes.head == schemes.embedding) {
      continue;
    }
    const TensorLayout layout = MakeTensorLayout(spec, SchemeOf(spec, schemes), schemes.block_size);
    plan.tensors.push_back({.stored = {.spec = spec,
                                       .layout = layout,
                                       .data = {.bytes = layout.data_bytes()},
                                       .scales = {.bytes = layout.scale_bytes()}},
                            .section = SectionOf(spec),
                            .parts = std::move(tensor.parts)});
  }
  return plan;
}

void PlaceTensors(uint64_t metadata_bytes, FilePlan& plan) {
  uint64_t end = sizeof(FilePreamble) + metadata_bytes;
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
