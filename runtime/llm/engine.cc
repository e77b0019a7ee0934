#include "llm/engine.h"

#include <algorithm>
#include <utility>

#include "core/cpu_threads.h"
#include "model/path_contents.h"
#include "xnn/row_bits.h"

namespace cria {
namespace {

// How many rows of logits one product computes.
size_t LogitRows(uint64_t max_bytes, size_t vocab_size, size_t chunk_tokens) {
  // Kernels compute whole tiles of up to this many rows: a few rows more take the time of another
  // tile.
  constexpr uint64_t kTileRows = 14;
  const uint64_t rows = max_bytes / (vocab_size * sizeof(float));
  if (rows >= chunk_tokens) return std::max<size_t>(chunk_tokens, 1);
  return std::max<size_t>(rows < kTileRows ? rows : rows / kTileRows * kTileRows, 1);
}

}  // namespace

bool CanDraft(const ModelOutline& model) {
  return std::ranges::all_of(model.matrices, [](const TensorLayout& matrix) {
    return xnn::RowsAreBitwiseAsAlone(matrix.scheme);
  });
}

MemoryPlanOptions ResolveOptions(const ModelOutline& model, const EngineOptions& options) {
  const size_t longest = model.config.longest_context();
  const size_t context = options.context_tokens == kModelsOwnContext ? longest
                         : options.context_tokens != 0
                             ? options.context_tokens
                             : std::min(Engine::kDefaultContextTokens, longest);
  const size_t chunk = std::min(options.chunk_tokens, context);
  const size_t num_threads = ThreadCountOrDefault(options.num_threads);
  const DraftOptions drafts = CanDraft(model) ? options.drafts : DraftOptions{};
  const size_t draft_rows =
      drafts.has_drafts() ? options.num_sequences + drafts.max_tokens : size_t{1};
  const size_t logit_rows = LogitRows(options.max_logit_bytes, model.config.vocab_size, chunk);
  return {
      .decoder = {.context_tokens = context,
                  .chunk_tokens = chunk,
                  .kv_type = options.kv_type,
                  .num_sequences = options.num_sequences,
                  .max_logit_rows = std::max(logit_rows, draft_rows)},
      .drafts = drafts,
      .num_threads = num_threads,
      .num_batch_threads = options.num_batch_threads == num_threads ? 0 : options.num_batch_threads,
      .weights_in_memory = !model.is_packed && options.packing.cache_folder.empty() &&
                           options.packing.packed_path.empty()};
}

Result<std::unique_ptr<Engine>> Engine::Load(const std::string& path,
                                             const EngineOptions& options) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, OpenModelPath(path));
  return Load(std::move(file), options);
}

Result<std::unique_ptr<Engine>> Engine::Load(platform::File opened, const EngineOptions& options) {
  const platform::MemoryUsage program = platform::ReadMemoryUsage();
  CRIA_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open(std::move(opened)));
  const ModelOutline outline = OutlineOf(file);
  MemoryPlanOptions resolved = ResolveOptions(outline, options);
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(file.config(), resolved.decoder));
  CRIA_RETURN_IF_ERROR(ValidateDraftOptions(options.drafts));
  // Plans the memory for the current `resolved`, and fails if the limits do not allow it.
  const auto make_plan = [&]() -> Result<MemoryPlan> {
    CRIA_ASSIGN_OR_RETURN(MemoryPlan plan, PlanMemory(outline, resolved, program));
    if (!options.ignore_memory_limits) {
      CRIA_RETURN_IF_ERROR(CheckFits(
          outline, plan, MemoryBounds::Of(platform::ReadMemoryLimits(), options.memory_limit_bytes),
          program));
    }
    return plan;
  };
  CRIA_ASSIGN_OR_RETURN(MemoryPlan plan, make_plan());

  if (options.drafts.has_drafts() && !resolved.drafts.has_drafts() && options.on_notice) {
    options.on_notice(
        "there are no drafts, because this processor's products of several rows round differently "
        "from those of one, and so could change the text");
  }
  CRIA_ASSIGN_OR_RETURN(ThreadPool pool, ThreadPool::Create(resolved.num_threads));
  std::unique_ptr<Engine> engine(new Engine(std::move(plan), std::move(file), std::move(pool)));
  if (resolved.num_batch_threads != 0) {
    CRIA_ASSIGN_OR_RETURN(engine->own_batch_pool_, ThreadPool::Create(resolved.num_batch_threads));
  }
  CRIA_ASSIGN_OR_RETURN(engine->tokenizer_, Tokenizer::Create(engine->file_.vocabulary()));
  xnn::PackingOptions packing = options.packing;
  packing.check_memory = [&]() -> Status {
    resolved.weights_in_memory = true;
    CRIA_ASSIGN_OR_RETURN(engine->plan_, make_plan());
    return {};
  };
  CRIA_ASSIGN_OR_RETURN(engine->weights_,
                        xnn::LoadPackedWeights(engine->file_, packing, engine->batch_pool()));
  CRIA_ASSIGN_OR_RETURN(engine->decoder_,
                        Decoder::Create(engine->file_, *engine->weights_, resolved.decoder,
                                        engine->pool_, engine->batch_pool()));
  engine->scheduler_ = std::make_unique<Scheduler>(*engine->decoder_);
  return engine;
}

std::unique_ptr<Session> Engine::NewSession() {
  const DraftOptions& drafts = plan_.options.drafts;
  std::unique_ptr<Drafting> drafting;
  if (drafts.has_drafts()) {
    drafting = std::make_unique<Drafting>(drafts, decoder_->context_tokens());
  }
  return std::make_unique<Session>(*scheduler_, std::move(drafting));
}

Engine::Engine(MemoryPlan plan, ModelFile file, ThreadPool pool)
    : plan_(std::move(plan)),
      file_(std::move(file)),
      chat_template_(file_.chat_template_source(), file_.vocabulary(), file_.path()),
      pool_(std::move(pool)) {}

// Defined here and not in the header, because freeing its parts takes much code.
Engine::~Engine() = default;

}  // namespace cria
