#include "ranks/ordered_collective.h"

#include <algorithm>
#include <format>

#include "core/numeric.h"

namespace cria::ranks {
namespace {

void AddTo(float* sums, const float* values, size_t size) {
  for (size_t i = 0; i < size; ++i) sums[i] += values[i];
}

}  // namespace

OrderedCollective::OrderedCollective(Transport& transport) : transport_(transport) {
  outgoing_.reserve(num_ranks());
  incoming_.reserve(num_ranks());
}

uint64_t OrderedCollective::MemoryBytes(size_t max_values) const {
  // The largest part of the values, of every other rank; of two ranks, all values.
  const uint64_t others = num_ranks() - 1;
  return others == 1 ? max_values * sizeof(float)
                     : others * DivideRoundingUp(max_values, num_ranks()) * sizeof(float);
}

Status OrderedCollective::Reserve(size_t max_values) {
  const uint64_t bytes = MemoryBytes(max_values);
  received_ = {};
  CRIA_ASSIGN_OR_RETURN(memory_, platform::PageBlock::Allocate(bytes));
  received_ = {reinterpret_cast<float*>(memory_.bytes().data()),
               static_cast<size_t>(bytes / sizeof(float))};
  return {};
}

Range OrderedCollective::PartOf(size_t num_values, size_t num_ranks, size_t rank) {
  const size_t size = DivideRoundingUp(num_values, num_ranks);
  return {std::min(rank * size, num_values), std::min((rank + 1) * size, num_values)};
}

uint64_t OrderedCollective::SentBytes(size_t num_values, size_t num_ranks, size_t rank) {
  if (num_ranks == 2) return num_values * sizeof(float);
  const size_t own = PartOf(num_values, num_ranks, rank).size();
  return (num_values - own + own * (num_ranks - 1)) * sizeof(float);
}

Status OrderedCollective::Sum(std::span<float> values) {
  if (MemoryBytes(values.size()) > received_.size_bytes()) {
    return Fail(ErrorCode::kInternal,
                std::format("a sum of {} values is larger than was reserved", values.size()));
  }
  if (num_ranks() == 2) return SumOfTwo(values);
  const auto part = [&](size_t other) {
    const Range range = PartOf(values.size(), num_ranks(), other);
    return values.subspan(range.begin, range.size());
  };
  const std::span<float> own = part(rank());
  outgoing_.clear();
  incoming_.clear();
  std::span<float> rest = received_;
  for (size_t other = 0; other < num_ranks(); ++other) {
    if (other == rank()) continue;
    outgoing_.push_back({other, std::as_bytes(part(other))});
    incoming_.push_back({other, std::as_writable_bytes(rest.first(own.size()))});
    rest = rest.subspan(own.size());
  }
  CRIA_RETURN_IF_ERROR(transport_.Exchange(outgoing_, incoming_));
  AddInOrder(own);
  outgoing_.clear();
  incoming_.clear();
  for (size_t other = 0; other < num_ranks(); ++other) {
    if (other == rank()) continue;
    outgoing_.push_back({other, std::as_bytes(own)});
    incoming_.push_back({other, std::as_writable_bytes(part(other))});
  }
  return transport_.Exchange(outgoing_, incoming_);
}

void OrderedCollective::AddInOrder(std::span<float> own) {
  const size_t size = own.size();
  if (size == 0) return;
  const size_t own_rank = rank();
  // The sums begin with the values of rank 0, which are this rank's own or the first received ones.
  float* const sums = own_rank == 0 ? own.data() : received_.data();
  const float* received = own_rank == 0 ? received_.data() : received_.data() + size;
  for (size_t other = 1; other < num_ranks(); ++other) {
    if (other == own_rank) {
      AddTo(sums, own.data(), size);
    } else {
      AddTo(sums, received, size);
      received += size;
    }
  }
  if (own_rank != 0) std::copy_n(sums, size, own.data());
}

Status OrderedCollective::SumOfTwo(std::span<float> values) {
  const size_t other = 1 - rank();
  const Outgoing sent = {other, std::as_bytes(values)};
  const Incoming received = {other, std::as_writable_bytes(received_.first(values.size()))};
  CRIA_RETURN_IF_ERROR(transport_.Exchange(std::span(&sent, 1), std::span(&received, 1)));
  // The sum of two numbers does not depend on their order.
  AddTo(values.data(), received_.data(), values.size());
  return {};
}

Status OrderedCollective::Gather(std::span<const std::byte> sent,
                                 std::span<const std::span<std::byte>> received) {
  if (rank() != 0) {
    const Outgoing message = {0, sent};
    return transport_.Exchange(std::span(&message, 1), {});
  }
  incoming_.clear();
  for (size_t other = 1; other < num_ranks(); ++other)
    incoming_.push_back({other, received[other]});
  return transport_.Exchange({}, incoming_);
}

Status OrderedCollective::Broadcast(std::span<std::byte> bytes) {
  if (rank() != 0) {
    const Incoming message = {0, bytes};
    return transport_.Exchange({}, std::span(&message, 1));
  }
  outgoing_.clear();
  for (size_t other = 1; other < num_ranks(); ++other) outgoing_.push_back({other, bytes});
  return transport_.Exchange(outgoing_, {});
}

}  // namespace cria::ranks
