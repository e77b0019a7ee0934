#include "ranks/model_part.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "core/format.h"
#include "ranks/tensor_slice.h"

namespace cria {
namespace {

using ranks::Range;
using ranks::RankShare;
using ranks::SlicedTensor;
using ranks::TensorSlice;

// It is raised if the same share would get other bytes, so that they are packed again.
constexpr uint64_t kPartVersion = 3;

Digest DigestOfPart(const Digest& model, const RankShare& share) {
  std::vector<uint64_t> numbers = {kPartVersion};
  for (const Range& range :
       {share.query_heads, share.key_value_heads, share.conv_channels, share.channels,
        share.expert_channels, share.shared_expert_channels, share.vocabulary}) {
    numbers.push_back(range.begin);
    numbers.push_back(range.end);
  }
  std::vector<std::byte> bytes(model.size() + numbers.size() * sizeof(uint64_t));
  std::memcpy(bytes.data(), model.data(), model.size());
  std::memcpy(bytes.data() + model.size(), numbers.data(), numbers.size() * sizeof(uint64_t));
  return Digest128(bytes);
}

}  // namespace

Status ModelPart::Take(const RankShare& share, size_t rank, ModelFile& model) {
  if (model.packed_offset_ != 0) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: is a standalone file, whose packed weights cannot be divided; use "
                       "the model file that it was made from",
                       model.path()));
  }
  const ModelConfig whole = model.config_;
  // A tied head is the embedding table: every rank reads rows of that, but multiplies by its own
  // part.
  if (model.tensor(TensorRole::kLmHead).spec.role == TensorRole::kEmbedTokens) {
    StoredTensor head = model.tensor(TensorRole::kEmbedTokens);
    head.spec.role = TensorRole::kLmHead;
    model.tensor_index_[static_cast<size_t>(TensorRole::kLmHead)] =
        static_cast<uint32_t>(model.tensors_.size());
    model.tensors_.push_back(head);
  }
  if (std::ranges::any_of(model.tensors_,
                          [](const StoredTensor& tensor) { return tensor.first_row != 0; })) {
    return Fail(
        ErrorCode::kUnsupported,
        Format("{}: has queries, keys and values, or gate and up, in different formats, "
               "which cannot be divided among ranks; convert the checkpoint to int4 or int8",
               model.path()));
  }
  const auto parts = std::make_shared<std::deque<SlicedTensor>>();
  for (StoredTensor& tensor : model.tensors_) {
    TensorSlice slice = TensorSlice::Of(tensor.spec, whole, share);
    if (slice.IsAllOf(tensor.layout)) continue;
    const SlicedTensor& part = parts->emplace_back(tensor, std::move(slice));
    tensor.part = &part;
    tensor.layout = part.layout();
    tensor.spec.output_channels = tensor.layout.output_channels;
    tensor.spec.input_channels = tensor.layout.input_channels;
    tensor.data.bytes = tensor.layout.data_bytes();
    tensor.scales.bytes = tensor.layout.scale_bytes();
  }
  model.parts_ = parts;
  ModelConfig& config = model.config_;
  config.num_attention_heads = static_cast<uint32_t>(share.query_heads.size());
  config.num_key_value_heads = static_cast<uint32_t>(share.key_value_heads.size());
  config.conv_dim = static_cast<uint32_t>(share.conv_channels.size());
  config.intermediate_size = static_cast<uint32_t>(share.channels.size());
  config.moe_intermediate_size = static_cast<uint32_t>(share.expert_channels.size());
  config.shared_expert_intermediate_size =
      static_cast<uint32_t>(share.shared_expert_channels.size());
  if (rank != 0) config.vocab_size = static_cast<uint32_t>(share.vocabulary.size());
  model.packing_digest_ = DigestOfPart(model.digest_, share);
  return {};
}

}  // namespace cria
