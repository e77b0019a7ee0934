#include "ranks/state_exchange.h"

#include <algorithm>

namespace cria::ranks {
namespace {

size_t NumRows(const StateSize& size) { return size.state_elements / size.row_elements; }

}  // namespace

uint64_t StateExchange::NumElements(const ModelConfig& config, std::span<const RankShare> shares,
                                    size_t rank) {
  if (!config.has_short_conv()) return 0;
  const size_t channels = rank == 0 ? 2 * shares.back().conv_channels.end : config.conv_channels();
  return uint64_t{config.conv_L_cache - 1} * channels;
}

StateExchange::StateExchange(Collective& collective, std::span<const RankShare> shares,
                             std::span<float> memory)
    : collective_(&collective), shares_(shares), memory_(memory) {
  if (collective.rank() != 0) return;
  received_.resize(collective.num_ranks());
  sent_.resize(collective.num_ranks());
}

size_t StateExchange::NumWholeElements(const StateSize& size) const {
  return NumRows(size) * shares_.back().conv_channels.end;
}

std::span<float> StateExchange::Packed(const StateSize& size, size_t rank) const {
  const Range& channels = shares_[rank].conv_channels;
  return memory_.subspan(memory_.size() / 2 + NumRows(size) * channels.begin,
                         NumRows(size) * channels.size());
}

void StateExchange::ToWhole(const StateSize& size, size_t rank, std::span<const float> part) const {
  const Range& channels = shares_[rank].conv_channels;
  const size_t width = shares_.back().conv_channels.end;
  for (size_t row = 0; row < NumRows(size); ++row) {
    std::ranges::copy(part.subspan(row * channels.size(), channels.size()),
                      Whole().subspan(row * width + channels.begin).begin());
  }
}

void StateExchange::FromWhole(const StateSize& size, size_t rank, std::span<float> part) const {
  const Range& channels = shares_[rank].conv_channels;
  const size_t width = shares_.back().conv_channels.end;
  for (size_t row = 0; row < NumRows(size); ++row) {
    std::ranges::copy(Whole().subspan(row * width + channels.begin, channels.size()),
                      part.subspan(row * channels.size()).begin());
  }
}

Status StateExchange::Gather(const StateSize& size, std::span<float> own) {
  if (collective_->rank() != 0) return collective_->Gather(std::as_bytes(own), {});
  for (size_t other = 1; other < shares_.size(); ++other) {
    received_[other] = std::as_writable_bytes(Packed(size, other));
  }
  CRIA_RETURN_IF_ERROR(collective_->Gather({}, received_));
  ToWhole(size, 0, own);
  for (size_t other = 1; other < shares_.size(); ++other) {
    ToWhole(size, other, Packed(size, other));
  }
  return {};
}

Status StateExchange::Scatter(const StateSize& size, std::span<float> own) {
  if (collective_->rank() != 0) return collective_->Scatter({}, std::as_writable_bytes(own));
  for (size_t other = 1; other < shares_.size(); ++other) {
    FromWhole(size, other, Packed(size, other));
    sent_[other] = std::as_bytes(Packed(size, other));
  }
  CRIA_RETURN_IF_ERROR(collective_->Scatter(sent_, {}));
  FromWhole(size, 0, own);
  return {};
}

}  // namespace cria::ranks
