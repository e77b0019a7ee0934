#include "ranks/ranked_loader.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/format.h"
#include "core/platform.h"
#include "model/checksum.h"
#include "model/model_outline.h"
#include "model/path_contents.h"
#include "ops/simd_target_name.h"
#include "ranks/agreement.h"
#include "ranks/engine_fields.h"

namespace cria::ranks {

// An option on its way to other ranks.
struct OptionWord {
  uint64_t is_there;  // 0 for an optional one that is absent.
  uint64_t value;
};
using OptionWords = std::array<OptionWord, std::tuple_size_v<decltype(kSharedEngineFields)>>;

namespace {

template <typename T>
std::span<std::byte> BytesOf(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span(&value, 1));
}

template <typename T>
OptionWord WordOf(const T& value) {
  return {.is_there = 1, .value = static_cast<uint64_t>(value)};
}
template <typename T>
OptionWord WordOf(const std::optional<T>& value) {
  return value ? WordOf(*value) : OptionWord{};
}

template <typename T>
void TakeWord(const OptionWord& word, T& value) {
  value = static_cast<T>(word.value);
}
template <typename T>
void TakeWord(const OptionWord& word, std::optional<T>& value) {
  value.reset();
  if (word.is_there != 0) value = static_cast<T>(word.value);
}

}  // namespace

// What rank 0 sends before the texts and weights.
struct RankedLoader::Order {
  uint32_t ends;  // There is nothing else.
  uint32_t path_bytes;
  uint32_t cache_bytes;
  uint32_t packed_bytes;
  uint32_t num_weights;
  uint32_t never_packs;
  uint32_t has_own_cache;
  WireType wire;
  uint32_t wants_drafts;  // Whether rank 0 wants drafts.
  OptionWords options;
};

EngineOptions FollowerOptions(EngineOptions options) {
  if (options.wants_drafts()) {
    options.min_logit_rows = options.draft_rows();
    options.min_revocable_tokens = options.draft_revocable_tokens();
  }
  ForEachEngineField(kFirstRankEngineFields,
                     [&](auto field) { options.*field = EngineOptions{}.*field; });
  return options;
}

Status RankedLoader::Meet(std::string_view version, size_t address_bytes) {
  const uint64_t hash = ChecksumOf(std::as_bytes(std::span(version)));
  CRIA_RETURN_IF_ERROR(
      Agree(collective_, {}, std::as_bytes(std::span(&hash, 1)), "another version of cria"));
  const uint64_t address_bits = 8 * uint64_t{address_bytes};
  return Agree(collective_, {}, std::as_bytes(std::span(&address_bits, 1)),
               "addresses of another size (32 or 64 bits)");
}

Result<std::unique_ptr<Engine>> RankedLoader::Load(const std::string& path, EngineOptions options,
                                                   LinkOptions link) {
  if (is_loaded_) {
    is_loaded_ = false;
    CRIA_RETURN_IF_ERROR(link_->Stop());
  }
  const size_t num_ranks = collective_.num_ranks();
  if (link.weights.empty()) link.weights.assign(num_ranks, 1.0);
  if (link.weights.size() != num_ranks) {
    return Fail(ErrorCode::kUsage,
                Format("there must be a weight for each rank, or none: {}, not {}", num_ranks,
                       link.weights.size()));
  }
  link_options_ = std::move(link);
  wants_drafts_ = options.wants_drafts();
  CRIA_RETURN_IF_ERROR(SendOrder(path, FollowerOptions(options)));
  Result<std::unique_ptr<Engine>> engine = LoadTogether(path, std::move(options));
  is_loaded_ = engine.has_value();
  return engine;
}

Status RankedLoader::SendOrder(const std::string& path, const EngineOptions& options) {
  const xnn::PackingOptions& packing = options.packing;
  const bool has_own_cache = packing.cache_folder == xnn::PackCache::UserFolder();
  const std::string cache = has_own_cache ? "" : packing.cache_folder;
  Order order = {.ends = 0,
                 .path_bytes = static_cast<uint32_t>(path.size()),
                 .cache_bytes = static_cast<uint32_t>(cache.size()),
                 .packed_bytes = static_cast<uint32_t>(packing.packed_path.size()),
                 .num_weights = static_cast<uint32_t>(link_options_.weights.size()),
                 .never_packs = packing.never_pack ? 1u : 0u,
                 .has_own_cache = has_own_cache ? 1u : 0u,
                 .wire = link_options_.wire,
                 .wants_drafts = wants_drafts_ ? 1u : 0u,
                 .options = {}};
  size_t next = 0;
  ForEachEngineField(kSharedEngineFields,
                     [&](auto field) { order.options[next++] = WordOf(options.*field); });
  CRIA_RETURN_IF_ERROR(collective_.Broadcast(BytesOf(order)));
  std::string text = path + cache + packing.packed_path;
  CRIA_RETURN_IF_ERROR(collective_.Broadcast(std::as_writable_bytes(std::span(text))));
  return collective_.Broadcast(std::as_writable_bytes(std::span(link_options_.weights)));
}

Result<std::optional<EngineOptions>> RankedLoader::ReceiveOrder(std::string& path) {
  Order order;
  collective_.Enter(RankPhase::kIdle);
  CRIA_RETURN_IF_ERROR(collective_.Broadcast(BytesOf(order)));
  collective_.Enter(RankPhase::kComputing);
  if (order.ends != 0) return std::nullopt;
  std::string text(size_t{order.path_bytes} + order.cache_bytes + order.packed_bytes, '\0');
  CRIA_RETURN_IF_ERROR(collective_.Broadcast(std::as_writable_bytes(std::span(text))));
  link_options_.wire = order.wire;
  link_options_.weights.resize(order.num_weights);
  CRIA_RETURN_IF_ERROR(
      collective_.Broadcast(std::as_writable_bytes(std::span(link_options_.weights))));
  path = text.substr(0, order.path_bytes);
  EngineOptions options;
  options.packing.cache_folder = order.has_own_cache != 0
                                     ? xnn::PackCache::UserFolder()
                                     : text.substr(order.path_bytes, order.cache_bytes);
  options.packing.packed_path = text.substr(size_t{order.path_bytes} + order.cache_bytes);
  options.packing.never_pack = order.never_packs != 0;
  size_t next = 0;
  ForEachEngineField(kSharedEngineFields,
                     [&](auto field) { TakeWord(order.options[next++], options.*field); });
  wants_drafts_ = order.wants_drafts != 0;
  return options;
}

Result<std::unique_ptr<Engine>> RankedLoader::LoadTogether(const std::string& path,
                                                           EngineOptions options) {
  collective_.Enter(RankPhase::kLoading);
  options.packing.on_progress = [this, told = std::move(options.packing.on_progress)](
                                    uint64_t done, uint64_t total, std::string_view matrix) {
    collective_.Enter(RankPhase::kLoading);
    return !told || told(done, total, matrix);
  };
  Digest digest = {};
  const Status opened = [&]() -> Status {
    CRIA_ASSIGN_OR_RETURN(platform::File file, OpenModelPath(path));
    CRIA_ASSIGN_OR_RETURN(const ModelFile model, ModelFile::Open(std::move(file)));
    digest = model.digest();
    return {};
  }();
  CRIA_RETURN_IF_ERROR(
      Agree(collective_, opened, std::as_bytes(std::span(digest)), "another model file"));
  link_ = std::make_unique<CollectiveLink>(collective_, link_options_);
  options.ranks = link_.get();
  Result<std::unique_ptr<Engine>> engine = Engine::Load(path, options);
  const Status loaded = engine ? Status() : Status(std::unexpected(engine.error()));
  // Rank 0 would not know that there is less room on another rank.
  uint64_t rows = engine ? (*engine)->memory_plan().options.decoder.chunk_tokens : 0;
  CRIA_RETURN_IF_ERROR(Agree(collective_, loaded, BytesOf(rows), "other options"));
  CRIA_RETURN_IF_ERROR(AgreeOnProcessor((*engine)->file()));
  collective_.Enter(RankPhase::kComputing);
  return engine;
}

Status RankedLoader::AgreeOnProcessor(const ModelFile& model) {
  // If a rank rounded the rows of a draft differently from single ones, drafts would change the
  // text. If the scores of a router had other bits on a rank, it could choose another expert.
  if (!wants_drafts_ && model.config().num_experts == 0) return {};
  const std::string own = Format("{} {:d}", ops::SimdTargetName(), CanDraft(OutlineOf(model)));
  const uint64_t hash = ChecksumOf(std::as_bytes(std::span(own)));
  return Agree(collective_, {}, std::as_bytes(std::span(&hash, 1)),
               "another instruction set (drafts and mixtures of experts need the same)");
}

Status RankedLoader::End() {
  if (is_loaded_) CRIA_RETURN_IF_ERROR(link_->Stop());
  is_loaded_ = false;
  Order order = {};
  order.ends = 1;
  return collective_.Broadcast(BytesOf(order));
}

Status RankedLoader::Follow(const std::function<void(std::string_view)>& on_notice) {
  Status loaded;
  while (true) {
    std::string path;
    Result<std::optional<EngineOptions>> order = ReceiveOrder(path);
    // The first error is the reason of the others.
    if (!order) return loaded ? Status(std::unexpected(order.error())) : loaded;
    std::optional<EngineOptions>& options = *order;
    if (!options) return {};
    options->on_notice = options->packing.on_notice = on_notice;
    const Result<std::unique_ptr<Engine>> engine = LoadTogether(path, std::move(*options));
    loaded = engine ? Status() : Status(std::unexpected(engine.error()));
    // Rank 0 has the error, too, unless it could not be told.
    if (!loaded) continue;
    CRIA_RETURN_IF_ERROR(link_->Follow((*engine)->decoder()));
  }
}

}  // namespace cria::ranks
