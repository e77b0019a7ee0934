#pragma once

// What the tests of the decoder run: a converted checkpoint, loaded with any options.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/thread_pool.h"
#include "decode/decoder.h"
#include "decode/open_sequence.h"
#include "reference/reference_decoder.h"
#include "support/converted_model.h"
#include "support/unwrap.h"

namespace cria {

using support::ConvertedModel;

// A model that is loaded into memory of its own, with a sequence for which the whole context is
// reserved.
class LoadedModel {
 public:
  LoadedModel(std::shared_ptr<const ConvertedModel> model, const DecoderOptions& options,
              size_t num_threads, size_t num_batch_threads = 1)
      : model_(std::move(model)), file_(model_->Open()) {
    pool_ = std::make_unique<ThreadPool>(Unwrap(ThreadPool::Create(num_threads)));
    batch_pool_ = std::make_unique<ThreadPool>(Unwrap(ThreadPool::Create(num_batch_threads)));
    weights_ = std::make_unique<xnn::PackedWeights>(
        Unwrap(xnn::PackedWeights::PackInMemory(file_, *pool_, nullptr)));
    decoder_ = Unwrap(Decoder::Create(file_, *weights_, options, *pool_, *batch_pool_));
    sequence_.emplace(Unwrap(OpenSequence::Create(decoder_->sequences(), options.context_tokens)));
  }

  LoadedModel(const reference::ReferenceModel& model, const ConvertOptions& conversion,
              const DecoderOptions& options, size_t num_threads, size_t num_batch_threads = 1)
      : LoadedModel(std::make_shared<const ConvertedModel>(model, conversion), options, num_threads,
                    num_batch_threads) {}

  Decoder& decoder() { return *decoder_; }
  // Frees what is reserved for it.
  void CloseSequence() { sequence_.reset(); }
  SequenceId sequence() const { return sequence_->id(); }
  size_t num_tokens() const { return decoder_->sequences().pages().num_tokens(sequence_->id()); }

  Status Forward(std::span<const int32_t> tokens, size_t first_position, size_t num_logits) {
    return decoder_->ForwardSequence(sequence_->id(), tokens, first_position, num_logits);
  }

  Status Drop(size_t first, size_t count) {
    CRIA_RETURN_IF_ERROR(decoder_->sequences().Drop(sequence_->id(), first, count));
    return decoder_->CarryOutMoves();
  }

  // The logits after each token, run in the chunks that the sizes say; the last size repeats.
  std::vector<float> Run(const std::vector<int32_t>& ids, std::vector<size_t> chunk_sizes) {
    std::vector<float> all;
    size_t position = 0;
    for (size_t i = 0; position < ids.size(); ++i) {
      const size_t wanted = chunk_sizes[std::min(i, chunk_sizes.size() - 1)];
      const size_t count = std::min(wanted, ids.size() - position);
      Unwrap(Forward(std::span(ids).subspan(position, count), position, count));
      for (size_t row = 0; row < count; ++row) {
        const auto logits = Unwrap(decoder_->Logits(row));
        all.insert(all.end(), logits.begin(), logits.end());
      }
      position += count;
    }
    return all;
  }

 private:
  std::shared_ptr<const ConvertedModel> model_;
  ModelFile file_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ThreadPool> batch_pool_;
  std::unique_ptr<xnn::PackedWeights> weights_;
  std::unique_ptr<Decoder> decoder_;
  std::optional<OpenSequence> sequence_;
};

inline std::vector<int32_t> SomeIds(size_t count, size_t vocab_size) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>((i * i * 7 + i * 13 + 5) % vocab_size);
  }
  return ids;
}

inline float LargestMagnitude(const std::vector<float>& values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

inline float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0.0f;
  for (size_t i = 0; i < a.size(); ++i) {
    const float difference = std::abs(a[i] - b[i]);
    if (std::isnan(difference)) return difference;  // Which no bound allows.
    largest = std::max(largest, difference);
  }
  return largest;
}

inline float RootMeanSquareDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return static_cast<float>(std::sqrt(sum / static_cast<double>(a.size())));
}

inline constexpr size_t kContext = 64;

inline std::vector<float> ReferenceLogits(const reference::ReferenceModel& model,
                                          const std::vector<int32_t>& ids) {
  const std::vector<double> logits = reference::Logits(model, {ids.begin(), ids.end()}, kContext);
  return {logits.begin(), logits.end()};
}

// How far the first row of logits is from the last row of `expected`, in units of its largest one.
inline float ErrorOfLogits(Decoder& decoder, const std::vector<float>& expected) {
  const auto logits = Unwrap(decoder.Logits(0));
  const std::vector<float> last(expected.end() - static_cast<ptrdiff_t>(logits.size()),
                                expected.end());
  return LargestDifference({logits.begin(), logits.end()}, last) / LargestMagnitude(last);
}

}  // namespace cria
