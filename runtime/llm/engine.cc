#include "llm/engine.h"

#include <algorithm>
#include <utility>

#include "core/cpu_threads.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "llm/model_drafter.h"
#include "llm/mtp_drafter.h"
#include "model/path_contents.h"
#include "xnn/row_bits.h"

namespace cria {
namespace {

// How many rows of logits one product computes.
size_t NumLogitRows(uint64_t max_bytes, size_t vocab_size, size_t chunk_tokens) {
  // Kernels compute whole tiles of up to this many rows: a few rows more take the time of another
  // tile.
  constexpr uint64_t kTileRows = 14;
  const uint64_t rows = max_bytes / (vocab_size * sizeof(float));
  if (rows >= chunk_tokens) return std::max<size_t>(chunk_tokens, 1);
  return std::max<size_t>(rows < kTileRows ? rows : rows / kTileRows * kTileRows, 1);
}

}  // namespace

Status CheckDrafters(const EngineOptions& options) {
  if (!options.drafts.has_mtp || options.draft_model_path.empty()) return {};
  return Fail(ErrorCode::kUsage,
              "drafts come from the model's own layer (mtp) or from a draft model, not from both");
}

bool CanDraft(const ModelOutline& model) {
  return std::ranges::all_of(model.matrices, [](const TensorLayout& matrix) {
    return matrix.is_plain || xnn::RowsAreBitwiseAsAlone(matrix.scheme);
  });
}

KvType DefaultKvType(bool prefers_f16_cache) {
  return prefers_f16_cache ? KvType::kF16 : KvType::kInt8;
}

MemoryPlanOptions ResolveOptions(const ModelOutline& model, const EngineOptions& options,
                                 std::shared_ptr<const ModelOutline> draft_model) {
  const size_t longest = model.config.longest_context();
  const size_t context = options.context_tokens == kModelsOwnContext ? longest
                         : options.context_tokens != 0
                             ? options.context_tokens
                             : std::min(Engine::kDefaultContextTokens, longest);
  const size_t chunk = std::min(options.chunk_tokens, context);
  const size_t num_threads = ThreadCountOrDefault(options.num_threads);
  DraftOptions drafts = CanDraft(model) ? options.drafts : DraftOptions{};
  drafts.has_model = CanDraft(model) && draft_model != nullptr;
  if (!drafts.has_model) draft_model = nullptr;
  const bool maps_weights = !options.packing.cache_folder.empty();
  const bool maps_draft_weights = draft_model == nullptr || draft_model->is_packed || maps_weights;
  const size_t draft_rows = drafts.has_drafts() ? options.draft_rows() : size_t{1};
  const size_t logit_rows = NumLogitRows(options.max_logit_bytes, model.config.vocab_size, chunk);
  const DecoderOptions decoder = {
      .context_tokens = context,
      .chunk_tokens = chunk,
      .kv_type = options.kv_type.value_or(DefaultKvType(model.prefers_f16_cache)),
      .num_sequences = options.num_sequences,
      .num_kept_sequences = options.num_kept_sequences.value_or(
          model.config.shares_all_pages() ? options.default_kept_sequences : 0),
      .max_logit_rows = std::max({logit_rows, draft_rows, options.min_logit_rows}),
      .num_checkpoints = options.num_checkpoints.value_or(2 + 2 * options.num_sequences),
      .revocable_tokens = std::max(drafts.has_drafts() ? options.draft_revocable_tokens() : 1,
                                   options.min_revocable_tokens),
      .has_mtp = drafts.has_mtp};
  MemoryPlanOptions resolved = {
      .decoder = decoder,
      .drafts = drafts,
      .max_constraints = options.max_constraints,
      .num_threads = num_threads,
      .num_batch_threads = options.num_batch_threads == num_threads ? 0 : options.num_batch_threads,
      .weights_in_memory = !model.is_packed && !maps_weights && options.packing.packed_path.empty(),
      .draft_model = std::move(draft_model),
      .draft_weights_in_memory = !maps_draft_weights,
      .other_memory = options.other_memory,
      .other_threads = options.other_threads,
      .num_texts = options.num_texts};
  if (options.ranks->num_ranks() > 1) {
    resolved.other_memory.push_back({MemoryPart::kRankExchange, MemoryKind::kPrivate,
                                     options.ranks->MemoryBytes(model.config, decoder)});
  }
  return resolved;
}

Result<std::shared_ptr<const ModelOutline>> OutlineOfDraftModel(const EngineOptions& options,
                                                                const ModelFile& model) {
  CRIA_RETURN_IF_ERROR(CheckDrafters(options));
  if (options.draft_model_path.empty()) return nullptr;
  CRIA_ASSIGN_OR_RETURN(const ModelFile file, OpenDraftModel(options.draft_model_path, model));
  return std::make_shared<const ModelOutline>(OutlineOf(file));
}

Result<ModelFile> OpenDraftModel(const std::string& path, const ModelFile& model) {
  CRIA_ASSIGN_OR_RETURN(platform::File opened, OpenModelPath(path));
  CRIA_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open(std::move(opened)));
  const bool is_alike = file.config().vocab_size == model.config().vocab_size &&
                        DigestOfPieces(file.vocabulary()) == DigestOfPieces(model.vocabulary());
  if (is_alike) return file;
  return Fail(ErrorCode::kUsage,
              Format("{}: has another vocabulary than {}, so that it cannot make drafts for "
                     "it; choose a smaller model of the same family",
                     file.path(), model.path()));
}

Result<std::unique_ptr<Engine>> Engine::Load(const std::string& path,
                                             const EngineOptions& options) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, OpenModelPath(path));
  return Load(std::move(file), options);
}

Result<std::unique_ptr<Engine>> Engine::Load(platform::File opened, const EngineOptions& options) {
  const platform::MemoryUsage program = options.program.value_or(platform::ReadMemoryUsage());
  CRIA_ASSIGN_OR_RETURN(ModelFile file, ModelFile::Open(std::move(opened)));
  CRIA_RETURN_IF_ERROR(options.ranks->TakePart(file));
  const ModelOutline outline = OutlineOf(file);
  CRIA_RETURN_IF_ERROR(CheckDrafters(options));
  std::optional<ModelFile> draft_file;
  std::shared_ptr<const ModelOutline> draft_outline;
  if (!options.draft_model_path.empty()) {
    CRIA_ASSIGN_OR_RETURN(draft_file, OpenDraftModel(options.draft_model_path, file));
    draft_outline = std::make_shared<const ModelOutline>(OutlineOf(*draft_file));
  }
  MemoryPlanOptions resolved = ResolveOptions(outline, options, draft_outline);
  CRIA_RETURN_IF_ERROR(ValidateDecoderOptions(file.config(), resolved.decoder));
  CRIA_RETURN_IF_ERROR(ValidateDraftOptions(options.drafts));
  CRIA_RETURN_IF_ERROR(options.thermal.Validate());
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
  const MemoryBounds bounds =
      MemoryBounds::Of(platform::ReadMemoryLimits(), options.memory_limit_bytes);
  if (bounds.resident_bytes && options.on_notice) {
    const uint64_t disk_bytes = plan.DiskBytesPerToken(*bounds.resident_bytes);
    if (disk_bytes != 0) {
      options.on_notice(
          Format("not all experts fit into memory: a token is expected to read {} from the disk",
                 FormatBytes(disk_bytes)));
    }
  }
  if (options.wants_drafts() && !resolved.drafts.has_drafts() && options.on_notice) {
    options.on_notice(
        "there are no drafts, because this processor's products of several rows round differently "
        "from those of one, and so could change the text");
  }

  CRIA_ASSIGN_OR_RETURN(ThreadPool own_pool, ThreadPool::Create(resolved.num_threads));
  const Pool pool = std::make_shared<const ThreadPool>(std::move(own_pool));
  Pool batch_pool = pool;
  if (resolved.num_batch_threads != 0) {
    CRIA_ASSIGN_OR_RETURN(ThreadPool own_batch_pool,
                          ThreadPool::Create(resolved.num_batch_threads));
    batch_pool = std::make_shared<const ThreadPool>(std::move(own_batch_pool));
  }
  std::unique_ptr<Engine> engine(new Engine(std::move(plan), std::move(file), pool, batch_pool));
  const auto check_memory = [&](bool& weights_in_memory) {
    return [&]() -> Status {
      weights_in_memory = true;
      CRIA_ASSIGN_OR_RETURN(engine->plan_, make_plan());
      return {};
    };
  };
  // Keys and values of a session file are exchanged while other sessions run.
  if (resolved.draft_model != nullptr || options.ranks->num_ranks() > 1) {
    engine->pool_mutex_ = std::make_unique<std::mutex>();
  }
  if (resolved.draft_model != nullptr) {
    engine->draft_engine_.reset(new Engine({}, std::move(*draft_file), pool, batch_pool));
    xnn::PackingOptions packing = options.packing;
    packing.packed_path.clear();
    const MemoryPlanOptions draft_options = DraftModelOptions(resolved);
    CRIA_RETURN_IF_ERROR(
        ValidateDecoderOptions(resolved.draft_model->config, draft_options.decoder));
    CRIA_RETURN_IF_ERROR(engine->draft_engine_->Start(
        draft_options, std::move(packing), check_memory(resolved.draft_weights_in_memory),
        engine->pool_mutex_.get(), NoOtherRanks()));
  }
  CRIA_ASSIGN_OR_RETURN(engine->tokenizer_, Tokenizer::Create(engine->file_.vocabulary()));
  if (resolved.max_constraints != 0) {
    CRIA_ASSIGN_OR_RETURN(
        engine->constraint_tokens_,
        ConstraintTokens::Create(engine->tokenizer_->vocabulary(),
                                 engine->file_.config().vocab_size, resolved.max_constraints));
  }
  if (options.thermal.has_limit()) engine->LimitHeat(options);
  CRIA_RETURN_IF_ERROR(engine->Start(resolved, options.packing,
                                     check_memory(resolved.weights_in_memory),
                                     engine->pool_mutex_.get(), *options.ranks));
  return engine;
}

Status Engine::Start(const MemoryPlanOptions& options, xnn::PackingOptions packing,
                     std::function<Status()> check_memory, std::mutex* pool_mutex,
                     RankLink& ranks) {
  packing.check_memory = std::move(check_memory);
  CRIA_ASSIGN_OR_RETURN(weights_, xnn::LoadPackedWeights(file_, packing, *batch_pool_));
  CRIA_RETURN_IF_ERROR(ranks.Prepare(file_.config(), options.decoder));
  CRIA_ASSIGN_OR_RETURN(decoder_, Decoder::Create(file_, *weights_, options.decoder, *pool_,
                                                  *batch_pool_, pool_mutex, ranks));
  scheduler_ =
      std::make_unique<Scheduler>(*decoder_, Scheduler::Clock::now, pacer_ ? &*pacer_ : nullptr);
  return {};
}

void Engine::LimitHeat(const EngineOptions& options) {
  auto sensor = platform::TemperatureSensor::Open(options.thermal.sensor_root);
  if (sensor.ReadCelsius()) {
    pacer_.emplace(options.thermal, std::move(sensor),
                   ThermalPacer::Pools{pool_.get(), batch_pool_.get()});
  } else if (options.on_notice) {
    options.on_notice(
        Format("the limit of {} °C has no effect, because this machine does not tell the "
               "temperature of its processor",
               options.thermal.max_celsius));
  }
}

std::unique_ptr<Drafter> Engine::NewDrafter() {
  const size_t context = decoder_->context_tokens();
  if (draft_engine_ != nullptr) {
    return std::make_unique<ModelDrafter>(draft_engine_->scheduler(), context);
  }
  if (!decoder_->can_guess()) return nullptr;
  return std::make_unique<MtpDrafter>(*scheduler_, context);
}

std::unique_ptr<Session> Engine::NewSession(bool with_drafts) {
  const DraftOptions& drafts = plan_.options.drafts;
  std::unique_ptr<Drafting> drafting;
  if (with_drafts && drafts.has_drafts()) {
    drafting = std::make_unique<Drafting>(drafts, decoder_->context_tokens(), NewDrafter());
  }
  return std::make_unique<Session>(*scheduler_, std::move(drafting));
}

Result<Sampler> Engine::NewSampler(const SamplerOptions& options) const {
  return Sampler::Create(options, decoder_->vocab_size(), &*tokenizer_, decoder_->context_tokens());
}

Result<std::unique_ptr<Constraint>> Engine::NewConstraint() {
  if (constraint_tokens_ == nullptr) {
    return Fail(ErrorCode::kUsage, "the model was loaded without memory for constraints",
                RemedyKind::kMoreConstraints);
  }
  return Constraint::Create(*constraint_tokens_);
}

Engine::Engine(MemoryPlan plan, ModelFile file, Pool pool, Pool batch_pool)
    : plan_(std::move(plan)),
      file_(std::move(file)),
      chat_template_(file_.chat_template_source(), file_.vocabulary(), file_.path()),
      pool_(std::move(pool)),
      batch_pool_(std::move(batch_pool)) {}

// Defined here and not in the header, because freeing its parts takes much code.
Engine::~Engine() = default;

}  // namespace cria
