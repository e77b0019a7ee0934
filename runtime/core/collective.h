#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"

namespace cria {

// In which type the numbers of a sum are sent from rank to rank.
enum class WireType : uint8_t { kF32, kF16, kInt8 };

// What a rank does between exchanges, which says how long the others may have to wait for it.
enum class RankPhase : uint8_t {
  kComputing,  // One step of a model.
  kLoading,    // Minutes, if weights must be packed.
  kIdle,       // It waits for rank 0, which may have nothing to do for days.
};

// What the ranks of one program do together. A rank is a process, usually on a board of its own;
// they are counted from 0. Every rank calls the same functions in the same order, one thread at a
// time. If a function fails, the ranks no longer agree, and the program has to end.
class Collective {
 public:
  virtual ~Collective() = default;

  // Private memory that sums of up to `max_values` take, and allocating so much.
  virtual uint64_t MemoryBytes(size_t max_values, WireType type) const = 0;
  virtual Status Reserve(uint64_t bytes) = 0;

  virtual size_t rank() const = 0;
  virtual size_t num_ranks() const = 0;

  // From now on, this rank is in this phase; it begins with computing. Every call is a sign that
  // the rank gets on, so that a long phase is entered again and again. Ranks that hang are found
  // by this, where they can be.
  virtual void Enter(RankPhase) {}

  // `values`, which are equally many on every rank and no more than there is memory for, become
  // their sums over all ranks. They are added in the order of the ranks, so that the sums are the
  // same bits on every rank and in every run, no matter which rank was late. Each rank's values are
  // first rounded to `type`, its own, too, and so are the sums if there are more than two ranks. If
  // a row is a whole number of blocks of `type`, its sums are the same bits alone and beside
  // others.
  virtual Status Sum(std::span<float> values, WireType type) = 0;
  // Rank 0 receives what each rank sends: `received` has one element for each rank, of which the
  // first is not used. On other ranks, `received` is empty.
  virtual Status Gather(std::span<const std::byte> sent,
                        std::span<const std::span<std::byte>> received) = 0;
  // Rank 0 sends something else to each rank: `sent` has one element for each rank, of which the
  // first is not used. On other ranks, `sent` is empty, and `received` has the size of what comes.
  virtual Status Scatter(std::span<const std::span<const std::byte>> sent,
                         std::span<std::byte> received) = 0;
  // `bytes`, which are equally many on every rank, become those of rank 0.
  virtual Status Broadcast(std::span<std::byte> bytes) = 0;
};

}  // namespace cria
