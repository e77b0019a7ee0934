#include "core/arena.h"

#include <algorithm>
#include <numeric>

#include "core/format.h"

namespace cria {
namespace {

uint64_t AlignUp(uint64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool Overlap(Lifetime a, Lifetime b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

}  // namespace

ArenaLayout::RegionId ArenaLayout::Add(std::string name, uint64_t bytes, Lifetime lifetime) {
  regions_.push_back({std::move(name), AlignUp(bytes), lifetime, 0});
  return regions_.size() - 1;
}

void ArenaLayout::Solve() {
  std::vector<RegionId> order(regions_.size());
  std::iota(order.begin(), order.end(), RegionId{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](RegionId id) { return regions_[id].bytes; });
  std::vector<RegionId> placed;
  total_bytes_ = 0;
  for (const RegionId id : order) {
    Region& region = regions_[id];
    std::vector<RegionId> neighbours;
    std::ranges::copy_if(placed, std::back_inserter(neighbours), [&](RegionId other) {
      return Overlap(region.lifetime, regions_[other].lifetime);
    });
    std::ranges::sort(neighbours, {}, [&](RegionId other) { return regions_[other].offset; });
    region.offset = 0;
    for (const RegionId other : neighbours) {
      if (region.offset + region.bytes <= regions_[other].offset) break;
      region.offset = std::max(region.offset, regions_[other].offset + regions_[other].bytes);
    }
    placed.push_back(id);
    total_bytes_ = std::max(total_bytes_, region.offset + region.bytes);
  }
}

Result<Arena> Arena::Create(const ArenaLayout& layout, uint64_t limit_bytes) {
  if (layout.total_bytes() > limit_bytes) {
    return Fail(ErrorCode::kOutOfMemory,
                Format("the session needs {} bytes of working memory but may take {}",
                       layout.total_bytes(), limit_bytes),
                RemedyKind::kLessContext);
  }
  CRIA_ASSIGN_OR_RETURN(platform::PageBlock block,
                        platform::PageBlock::Allocate(layout.total_bytes()));
  return Arena(std::move(block));
}

}  // namespace cria
