#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"

namespace cria {

// Every region of an arena begins at a multiple of this: the size of a cache line, and at least the
// size of every SIMD vector.
inline constexpr size_t kArenaAlignment = 64;

// The first and the last step in which a region is used. Regions whose lifetimes do not overlap may
// share bytes.
struct Lifetime {
  int first_step = 0;
  int last_step = 0;
};
inline constexpr Lifetime kWholeLife = {.first_step = -1, .last_step = 1 << 30};

// The offsets of all regions of an arena, computed before memory is allocated. The total may be
// more than a 32-bit program can address.
class ArenaLayout {
 public:
  using RegionId = size_t;

  // `name` appears in breakdowns. May be called until Solve.
  RegionId Add(std::string name, uint64_t bytes, Lifetime lifetime);

  // Places the regions, the largest first, each at the lowest offset where no region with an
  // overlapping lifetime is placed.
  void Solve();

  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t offset(RegionId region) const { return regions_[region].offset; }
  uint64_t bytes(RegionId region) const { return regions_[region].bytes; }
  const std::string& name(RegionId region) const { return regions_[region].name; }
  Lifetime lifetime(RegionId region) const { return regions_[region].lifetime; }
  size_t num_regions() const { return regions_.size(); }

 private:
  struct Region {
    std::string name;
    uint64_t bytes;
    Lifetime lifetime;
    uint64_t offset;
  };

  std::vector<Region> regions_;
  uint64_t total_bytes_ = 0;
};

// One block of memory laid out by a solved ArenaLayout.
class Arena {
 public:
  // Fails if the layout needs more than `limit_bytes`; the message has both figures.
  static Result<Arena> Create(const ArenaLayout& layout, uint64_t limit_bytes = UINT64_MAX);

  std::span<std::byte> Region(const ArenaLayout& layout, ArenaLayout::RegionId region) const {
    return block_.bytes().subspan(static_cast<size_t>(layout.offset(region)),
                                  static_cast<size_t>(layout.bytes(region)));
  }
  template <typename T>
  T* Pointer(const ArenaLayout& layout, ArenaLayout::RegionId region) const {
    static_assert(alignof(T) <= kArenaAlignment);
    return reinterpret_cast<T*>(block_.bytes().data() + layout.offset(region));
  }

 private:
  explicit Arena(platform::PageBlock block) : block_(std::move(block)) {}
  platform::PageBlock block_;
};

// An arena together with the layout that says where its regions are.
class ArenaView {
 public:
  // Both must outlive the view.
  ArenaView(const Arena& arena, const ArenaLayout& layout) : arena_(arena), layout_(layout) {}

  template <typename T>
  T* Pointer(ArenaLayout::RegionId region) const {
    return arena_.Pointer<T>(layout_, region);
  }
  std::span<std::byte> Region(ArenaLayout::RegionId region) const {
    return arena_.Region(layout_, region);
  }

 private:
  const Arena& arena_;
  const ArenaLayout& layout_;
};

// Takes an array of zeros from the beginning of `memory`, such as a region that holds several.
template <typename T>
std::span<T> TakeArray(std::span<std::byte>& memory, size_t count) {
  auto* const first = reinterpret_cast<T*>(memory.data());
  std::uninitialized_value_construct_n(first, count);
  memory = memory.subspan(count * sizeof(T));
  return {first, count};
}

}  // namespace cria
