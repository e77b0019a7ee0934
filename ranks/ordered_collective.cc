#include "ranks/ordered_collective.h"

#include <algorithm>
#include <array>

#include "core/format.h"
#include "core/numeric.h"
#include "ranks/wire_format.h"

namespace cria::ranks {
namespace {

// A message of this size takes hardly longer than an empty one: it fits a packet of most networks.
constexpr uint64_t kSmallMessageBytes = 1024;
// Messages in memory begin at multiples of this.
constexpr uint64_t kAlignment = 64;
// So many sums are added up before the next ones: a number of whole blocks.
constexpr size_t kAddedValues = 8 * kWireBlockValues;

uint64_t MessageMemory(size_t num_values, WireType type) {
  return DivideRoundingUp(WireBytes(num_values, type), kAlignment) * kAlignment;
}

bool IsSummedAtOnce(size_t num_values, WireType type, size_t num_ranks) {
  return num_ranks == 2 || WireBytes(num_values, type) <= kSmallMessageBytes;
}

// Where values are rounded, parts are whole blocks, so that the scales of these do not depend on
// how many values there are.
size_t UnitOfParts(WireType type) { return type == WireType::kF32 ? 1 : kWireBlockValues; }

// The values that a rank adds up for all.
Range PartOf(size_t num_values, WireType type, size_t num_ranks, size_t rank) {
  const size_t unit = UnitOfParts(type);
  const size_t num_units = DivideRoundingUp(num_values, unit);
  const auto begin = [&](size_t part) {
    return std::min(num_units * part / num_ranks * unit, num_values);
  };
  return {begin(rank), begin(rank + 1)};
}

// The size of the largest of these.
size_t MaxPartSize(size_t num_values, WireType type, size_t num_ranks) {
  const size_t unit = UnitOfParts(type);
  return std::min(DivideRoundingUp(DivideRoundingUp(num_values, unit), num_ranks) * unit,
                  num_values);
}

}  // namespace

OrderedCollective::OrderedCollective(Transport& transport) : transport_(transport) {
  outgoing_.reserve(num_ranks());
  incoming_.reserve(num_ranks());
}

uint64_t OrderedCollective::MemoryBytes(size_t max_values, WireType type) const {
  // Messages of the other ranks, and this rank's own unless they are the values themselves.
  const auto bytes = [&](size_t values, size_t num_own) {
    const size_t num_messages = num_ranks() - 1 + (type == WireType::kF32 ? 0 : num_own);
    return num_messages * MessageMemory(values, type);
  };
  if (IsSummedAtOnce(max_values, type, num_ranks())) return bytes(max_values, 1);
  // Fewer values, which are summed at once, may take more.
  return std::max(bytes(MaxPartSize(max_values, type, num_ranks()), num_ranks()),
                  num_ranks() * kSmallMessageBytes);
}

Status OrderedCollective::Reserve(uint64_t bytes) {
  CRIA_ASSIGN_OR_RETURN(memory_, platform::PageBlock::Allocate(bytes));
  return {};
}

size_t OrderedCollective::NumExchanges(size_t num_values, WireType type, size_t num_ranks) {
  return IsSummedAtOnce(num_values, type, num_ranks) ? 1 : 2;
}

uint64_t OrderedCollective::SentBytes(size_t num_values, WireType type, size_t num_ranks,
                                      size_t rank) {
  if (IsSummedAtOnce(num_values, type, num_ranks)) {
    return (num_ranks - 1) * WireBytes(num_values, type);
  }
  uint64_t bytes = 0;
  for (size_t other = 0; other < num_ranks; ++other) {
    const uint64_t part = WireBytes(PartOf(num_values, type, num_ranks, other).size(), type);
    bytes += other == rank ? (num_ranks - 1) * part : part;
  }
  return bytes;
}

std::span<std::byte> OrderedCollective::Take(uint64_t bytes) {
  const std::span<std::byte> taken = free_.first(bytes);
  free_ = free_.subspan(DivideRoundingUp(bytes, kAlignment) * kAlignment);
  return taken;
}

std::span<const std::byte> OrderedCollective::Encode(std::span<const float> values, WireType type) {
  if (type == WireType::kF32) return std::as_bytes(values);
  const std::span<std::byte> bytes = Take(WireBytes(values.size(), type));
  ToWire(values, type, bytes);
  return bytes;
}

std::span<std::byte> OrderedCollective::ReceiveFrom(size_t other, uint64_t bytes) {
  const std::span<std::byte> place = Take(bytes);
  incoming_.push_back({other, place});
  return place;
}

Status OrderedCollective::Sum(std::span<float> values, WireType type) {
  if (MemoryBytes(values.size(), type) > memory_.bytes().size()) {
    return Fail(ErrorCode::kInternal,
                Format("a sum of {} values is larger than was reserved", values.size()));
  }
  free_ = memory_.bytes();
  outgoing_.clear();
  incoming_.clear();
  return IsSummedAtOnce(values.size(), type, num_ranks()) ? SumAtOnce(values, type)
                                                          : SumInParts(values, type);
}

Status OrderedCollective::SumAtOnce(std::span<float> values, WireType type) {
  const std::span<const std::byte> own = Encode(values, type);
  for (size_t other = 0; other < num_ranks(); ++other) {
    if (other == rank()) continue;
    outgoing_.push_back({other, own});
    ReceiveFrom(other, own.size());
  }
  CRIA_RETURN_IF_ERROR(transport_.Exchange(outgoing_, incoming_));
  AddInOrder(own, type, values);
  if (num_ranks() == 2 || type == WireType::kF32) return {};
  // As the sums of more values are, which are sent once more.
  free_ = memory_.bytes();
  FromWire(Encode(values, type), type, values);
  return {};
}

Status OrderedCollective::SumInParts(std::span<float> values, WireType type) {
  const auto part = [&](size_t other) {
    const Range range = PartOf(values.size(), type, num_ranks(), other);
    return values.subspan(range.begin, range.size());
  };
  const std::span<float> sums = part(rank());
  const std::span<const std::byte> own = Encode(sums, type);
  for (size_t other = 0; other < num_ranks(); ++other) {
    if (other == rank()) continue;
    outgoing_.push_back({other, Encode(part(other), type)});
    ReceiveFrom(other, own.size());
  }
  CRIA_RETURN_IF_ERROR(transport_.Exchange(outgoing_, incoming_));
  AddInOrder(own, type, sums);

  // What was sent and received before is not needed any more.
  free_ = memory_.bytes();
  outgoing_.clear();
  incoming_.clear();
  const std::span<const std::byte> sent = Encode(sums, type);
  for (size_t other = 0; other < num_ranks(); ++other) {
    if (other == rank()) continue;
    outgoing_.push_back({other, sent});
    if (type == WireType::kF32) {
      incoming_.push_back({other, std::as_writable_bytes(part(other))});
    } else {
      ReceiveFrom(other, WireBytes(part(other).size(), type));
    }
  }
  CRIA_RETURN_IF_ERROR(transport_.Exchange(outgoing_, incoming_));
  if (type == WireType::kF32) return {};
  FromWire(sent, type, sums);
  for (const Incoming& message : incoming_) FromWire(message.bytes, type, part(message.rank));
  return {};
}

void OrderedCollective::AddInOrder(std::span<const std::byte> own, WireType type,
                                   std::span<float> sums) {
  std::array<float, kAddedValues> added;
  for (size_t first = 0; first < sums.size(); first += kAddedValues) {
    const size_t size = std::min(kAddedValues, sums.size() - first);
    const std::span some = std::span(added).first(size);
    const auto bytes_of = [&](std::span<const std::byte> message) {
      return message.subspan(WireBytes(first, type), WireBytes(size, type));
    };
    auto next = incoming_.begin();
    for (size_t other = 0; other < num_ranks(); ++other) {
      const auto bytes = bytes_of(other == rank() ? own : (next++)->bytes);
      other == 0 ? FromWire(bytes, type, some) : AddFromWire(bytes, type, some);
    }
    std::ranges::copy(some, sums.subspan(first).begin());
  }
}

Status OrderedCollective::Gather(std::span<const std::byte> sent,
                                 std::span<const std::span<std::byte>> received) {
  if (rank() != 0) {
    const Outgoing message = {0, sent};
    return transport_.Exchange(std::span(&message, 1), {});
  }
  incoming_.clear();
  for (size_t other = 1; other < num_ranks(); ++other) {
    incoming_.push_back({other, received[other]});
  }
  return transport_.Exchange({}, incoming_);
}

Status OrderedCollective::Scatter(std::span<const std::span<const std::byte>> sent,
                                  std::span<std::byte> received) {
  if (rank() != 0) {
    const Incoming message = {0, received};
    return transport_.Exchange({}, std::span(&message, 1));
  }
  outgoing_.clear();
  for (size_t other = 1; other < num_ranks(); ++other) outgoing_.push_back({other, sent[other]});
  return transport_.Exchange(outgoing_, {});
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
