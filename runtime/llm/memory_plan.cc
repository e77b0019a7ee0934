#include "llm/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/format.h"
#include "core/format_bytes.h"
#include "decode/embedding.h"
#include "llm/constraint.h"
#include "llm/sampler.h"
#include "llm/sequence_slots.h"
#include "model/file_layout.h"
#include "xnn/linear.h"
#include "xnn/packed_file_writer.h"
#include "xnn/packing.h"

namespace cria {
namespace {

// Heap of the tokenizer's patterns, the parsed chat template (50 kB for Llama 3.2's), the tables of
// tensors and layers, and text buffers. Measured.
constexpr uint64_t kHeapBytes = uint64_t{128} << 10;
// A text that a program holds besides a session's tokens takes so much for each token: its bytes,
// where its tokens end, and the log-probabilities that are sent at its end.
constexpr uint64_t kTextBytesPerToken = 64;
// Operators of one layer, which the layers share, and of the head, at least.
constexpr size_t kMinLinears = 5;
// The part of a thread's stack that is used.
constexpr uint64_t kTouchedStackBytes = uint64_t{32} << 10;
// XNNPACK's and our code that is used only when a model runs. Measured.
constexpr uint64_t kLaterCodeBytes = uint64_t{3} << 20;
// The guard page below a stack, and rounding by an allocator.
constexpr uint64_t kAddressSpaceSlackBytes = uint64_t{1} << 20;
// The program's own memory varies by about this much between runs; options that are offered must
// fit in the next run.
constexpr uint64_t kProgramVariationBytes = uint64_t{1} << 20;
// A shorter context is not offered, because it is too short to be useful.
constexpr size_t kMinContextTokens = 64;

struct WeightBytes {
  uint64_t packed = 0;
  uint64_t mapped = 0;         // All that is mapped, used or not.
  uint64_t experts = 0;        // A part of these: all experts.
  uint64_t token_experts = 0;  // A part of these: those that one token chooses.
  uint64_t creation = 0;       // Temporary memory while their operators are created.
};

// Without `has_mtp`, the pages of the layer that guesses tokens are mapped, but never read.
Result<WeightBytes> BytesOfWeights(const ModelOutline& model, bool has_mtp) {
  WeightBytes bytes;
  CRIA_ASSIGN_OR_RETURN(const std::vector<uint64_t> packed, xnn::PackedBytes(model.matrices));
  bytes.mapped = std::accumulate(packed.begin(), packed.end(), uint64_t{0});
  const size_t num_used = model.matrices.size() - (has_mtp ? 0 : model.num_mtp_matrices);
  for (size_t i = 0; i < num_used; ++i) {
    bytes.packed += packed[i];
    const TensorLayout& matrix = model.matrices[i];
    bytes.creation = std::max(bytes.creation, xnn::Linear::CreationBytes(matrix.Part()));
    if (matrix.num_parts == 1) continue;
    bytes.experts += packed[i];
    // Reading a part that shares pages reads one more, on average.
    const uint64_t shared_bytes = matrix.parts_share_pages ? kSectionAlignment : 0;
    bytes.token_experts += std::min(packed[i], (packed[i] / matrix.num_parts + shared_bytes) *
                                                   model.config.num_experts_per_tok);
  }
  return bytes;
}

// Matrices of the same role and layout share their operators. Roles are not known here; so many
// have different layouts.
size_t NumLinears(const ModelOutline& model) {
  std::vector<TensorLayout> known;
  for (const TensorLayout& matrix : model.matrices) {
    if (!std::ranges::contains(known, matrix)) known.push_back(matrix);
  }
  return std::max(known.size(), kMinLinears);
}

uint64_t BytesOfConstraints(size_t max_constraints, size_t vocab_size) {
  if (max_constraints == 0) return 0;
  return ConstraintTokens::MemoryBytes(vocab_size) +
         max_constraints * Constraint::MemoryBytes(vocab_size);
}

// All texts together have no more tokens than the cache has places. A text that is embedded has an
// embedding, and its numbers as text, in the place of a sampler, which takes more.
uint64_t BytesOfTexts(const MemoryPlanOptions& options, const ModelConfig& config) {
  if (options.num_texts == 0) return 0;
  return options.num_texts *
             Sampler::MemoryBytes(config.vocab_size, options.decoder.context_tokens) +
         options.decoder.context_tokens * kTextBytesPerToken;
}

void AddArenaLines(const DecoderMemory& memory, std::vector<MemoryLine>& lines) {
  uint64_t rest = memory.layout.total_bytes();
  const auto add = [&](MemoryPart part, std::initializer_list<ArenaLayout::RegionId> regions) {
    uint64_t bytes = 0;
    for (const ArenaLayout::RegionId region : regions) bytes += memory.layout.bytes(region);
    rest -= bytes;
    lines.push_back({part, MemoryKind::kPrivate, bytes});
  };
  add(MemoryPart::kKvCache, {memory.kv.keys, memory.kv.values, memory.kv.key_scales,
                             memory.kv.value_scales, memory.kv.key_offsets});
  if (memory.layout.bytes(memory.states.states) != 0) {
    add(MemoryPart::kRecurrentStates, {memory.states.states});
  }
  add(MemoryPart::kSequenceTables, {memory.sequences});
  add(MemoryPart::kRopeTables, {memory.ropes.cosines, memory.ropes.sines});
  add(MemoryPart::kNormWeights, {memory.vectors});
  add(MemoryPart::kLogits, {memory.logits, memory.mtp.logits});
  lines.push_back({MemoryPart::kActivations, MemoryKind::kPrivate, rest});
}

// What a model takes in addition to the program that runs it.
struct MemoryDemand {
  std::vector<MemoryLine> lines;
  uint64_t loading_bytes = 0;
  uint64_t address_space_bytes = 0;
  uint64_t token_expert_bytes = 0;
  uint64_t token_row_bytes = 0;

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const MemoryLine& line : lines) {
      if (line.kind != MemoryKind::kOnDemand && line.kind != MemoryKind::kInFile) {
        sum += line.bytes;
      }
    }
    return sum;
  }
};

Result<MemoryDemand> DemandOf(const ModelOutline& model, const MemoryPlanOptions& options) {
  const size_t batch_threads =
      options.num_batch_threads != 0 ? options.num_batch_threads : options.num_threads;
  const size_t max_threads = std::max(options.num_threads, batch_threads);
  CRIA_ASSIGN_OR_RETURN(
      const WeightBytes weights,
      BytesOfWeights(model, options.decoder.has_mtp || options.weights_in_memory));
  const DecoderMemory memory = PlanDecoderMemory(model.config, options.decoder, max_threads);
  const uint64_t operators =
      NumLinears(model) * xnn::Linear::MaxOperators(max_threads) * xnn::kOperatorBytes;
  const uint64_t embedding = EmbeddingReader::MappedBytes(model.embedding, model.file_is_mappable);
  const TensorLayout& table = model.per_layer_embedding;
  const uint64_t per_layer = EmbeddingReader::MappedBytes(table, model.file_is_mappable);
  // The tokens of a session, and of each sequence in the cache.
  const size_t context = MaxSequenceTokens(model.config, options.decoder);
  const uint64_t session =
      kHeapBytes + context * sizeof(int32_t) +
      SequenceSlots::TextBytes(options.decoder.num_sequences + options.decoder.num_kept_sequences,
                               context) +
      Drafting::MemoryBytes(options.drafts, context) + BytesOfTexts(options, model.config);
  const uint64_t constraints = BytesOfConstraints(options.max_constraints, model.config.vocab_size);
  const uint64_t reading = constraints == 0 ? 0 : ConstraintTokens::ReadingBytes();

  MemoryDemand demand;
  const MemoryKind weight_kind =
      options.weights_in_memory ? MemoryKind::kPrivate : MemoryKind::kMapped;
  demand.lines.push_back(
      {MemoryPart::kPackedWeights, weight_kind, weights.packed - weights.experts});
  if (weights.experts != 0) {
    demand.token_expert_bytes = options.weights_in_memory ? 0 : weights.token_experts;
    demand.lines.push_back({MemoryPart::kTokenExperts, weight_kind, weights.token_experts});
    demand.lines.push_back(
        {MemoryPart::kOtherExperts,
         options.weights_in_memory ? MemoryKind::kPrivate : MemoryKind::kOnDemand,
         weights.experts - weights.token_experts});
  }
  demand.lines.push_back({MemoryPart::kMetadata,
                          model.file_is_mappable ? MemoryKind::kMapped : MemoryKind::kPrivate,
                          model.metadata_bytes});
  demand.lines.push_back({MemoryPart::kEmbeddingTable, MemoryKind::kMapped, embedding});
  if (table.output_channels != 0) {
    const uint64_t bytes = table.data_bytes() + table.scale_bytes();
    demand.token_row_bytes =
        (table.row_bytes() + table.row_scale_bytes()) * uint64_t{model.config.num_hidden_layers};
    demand.lines.push_back({MemoryPart::kPerLayerEmbeddings,
                            per_layer == 0 ? MemoryKind::kInFile : MemoryKind::kMapped, bytes});
  }
  AddArenaLines(memory, demand.lines);
  demand.lines.push_back({MemoryPart::kOperators, MemoryKind::kPrivate, operators});
  demand.lines.push_back({MemoryPart::kSession, MemoryKind::kPrivate, session});
  if (constraints != 0) {
    demand.lines.push_back({MemoryPart::kConstraints, MemoryKind::kPrivate, constraints});
    demand.lines.push_back({MemoryPart::kReadingConstraints, MemoryKind::kPrivate, reading});
  }

  // Packing ends before the decoder allocates its memory; its source and its result are not mapped
  // at the same time. Operators are created after the decoder's tables.
  const uint64_t packing = 2 * xnn::PackingPeakBytes(model.matrices, batch_threads);
  uint64_t tables = 0;
  for (const auto region :
       {memory.ropes.cosines, memory.ropes.sines, memory.vectors, memory.kv.key_offsets}) {
    tables += memory.layout.bytes(region);
  }
  demand.loading_bytes = model.metadata_bytes + operators + session +
                         std::max(packing, weights.creation + tables) +
                         (options.weights_in_memory ? weights.packed : 0);
  demand.address_space_bytes = model.metadata_bytes + embedding + per_layer + weights.mapped +
                               memory.layout.total_bytes() + operators + session + constraints +
                               reading + std::max(packing, weights.creation);
  return demand;
}

std::string ContextText(const MemoryPlanOptions& options) {
  return Format("a context of {} tokens in {}", options.decoder.context_tokens,
                KvTypeName(options.decoder.kv_type));
}

// The longest context that fits, up to that of the options; nothing if none fits.
Result<std::optional<MemoryPlanOptions>> LongestFitting(const ModelOutline& model,
                                                        const MemoryPlanOptions& options,
                                                        const MemoryBounds& bounds,
                                                        const platform::MemoryUsage& program) {
  MemoryPlanOptions candidate = options;
  const auto fits = [&](size_t context_tokens) -> Result<bool> {
    candidate.decoder.context_tokens = context_tokens;
    CRIA_ASSIGN_OR_RETURN(const MemoryPlan plan, PlanMemory(model, candidate, program));
    return Fits(plan, bounds);
  };
  CRIA_ASSIGN_OR_RETURN(const bool own_fits, fits(options.decoder.context_tokens));
  if (own_fits) return options;
  size_t fitting = 0;
  size_t failing = options.decoder.context_tokens / kMinContextTokens + 1;
  while (failing - fitting > 1) {
    const size_t middle = std::midpoint(fitting, failing);
    CRIA_ASSIGN_OR_RETURN(const bool middle_fits, fits(middle * kMinContextTokens));
    (middle_fits ? fitting : failing) = middle;
  }
  if (fitting == 0) return std::nullopt;
  candidate.decoder.context_tokens = fitting * kMinContextTokens;
  return candidate;
}

}  // namespace

uint64_t MemoryPlan::BytesOf(MemoryKind kind) const {
  uint64_t bytes = 0;
  for (const MemoryLine& line : lines) bytes += line.kind == kind ? line.bytes : 0;
  return bytes;
}

uint64_t MemoryPlan::BytesOf(MemoryPart part) const {
  const auto line = std::ranges::find_if(lines, [part](const MemoryLine& candidate) {
    return candidate.part == part && !candidate.is_of_draft_model;
  });
  return line == lines.end() ? 0 : line->bytes;
}

uint64_t MemoryPlan::DiskBytesPerToken(uint64_t resident_bytes) const {
  const uint64_t experts = token_expert_bytes + on_demand_bytes();
  if (token_expert_bytes == 0 || resident_bytes >= steady_bytes() + on_demand_bytes()) return 0;
  const uint64_t rest = steady_bytes() - token_expert_bytes;
  const double kept = static_cast<double>(resident_bytes - std::min(resident_bytes, rest));
  const double missing = 1.0 - kept / static_cast<double>(experts);
  return static_cast<uint64_t>(missing * static_cast<double>(token_expert_bytes));
}

uint64_t MemoryPlan::peak_bytes() const { return std::max(steady_bytes(), loading_bytes); }

MemoryPlanOptions DraftModelOptions(const MemoryPlanOptions& options) {
  const ModelConfig& config = options.draft_model->config;
  MemoryPlanOptions result = options;
  DecoderOptions& decoder = result.decoder;
  decoder.context_tokens =
      std::min<size_t>(decoder.context_tokens, config.longest_context() * decoder.num_sequences);
  decoder.chunk_tokens = std::min(decoder.chunk_tokens, decoder.context_tokens);
  decoder.max_logit_rows = 1;
  decoder.has_mtp = false;
  result.drafts = {};
  result.max_constraints = 0;
  result.weights_in_memory = options.draft_weights_in_memory;
  result.draft_model = nullptr;
  result.other_memory.clear();
  result.other_threads = 0;
  result.num_texts = 0;
  return result;
}

Result<MemoryPlan> PlanMemory(const ModelOutline& model, const MemoryPlanOptions& options,
                              const platform::MemoryUsage& program) {
  CRIA_ASSIGN_OR_RETURN(MemoryDemand demand, DemandOf(model, options));
  if (options.draft_model != nullptr) {
    CRIA_ASSIGN_OR_RETURN(MemoryDemand draft,
                          DemandOf(*options.draft_model, DraftModelOptions(options)));
    // It is loaded before the other model.
    demand.loading_bytes = std::max(draft.loading_bytes, draft.bytes() + demand.loading_bytes);
    demand.address_space_bytes += draft.address_space_bytes;
    for (MemoryLine& line : draft.lines) {
      line.is_of_draft_model = true;
      demand.lines.push_back(std::move(line));
    }
  }
  // All threads except the caller's, which is in both pools.
  const size_t own_threads = options.num_threads - 1 +
                             (options.num_batch_threads != 0 ? options.num_batch_threads - 1 : 0);
  MemoryPlan plan = {.options = options, .lines = std::move(demand.lines)};
  plan.token_expert_bytes = demand.token_expert_bytes;
  plan.token_row_bytes = demand.token_row_bytes;
  plan.lines.push_back(
      {MemoryPart::kThreadStacks, MemoryKind::kPrivate, (own_threads + 1) * kTouchedStackBytes});
  plan.lines.push_back({MemoryPart::kProgram, MemoryKind::kPrivate, program.private_bytes});
  plan.lines.push_back({MemoryPart::kProgramFiles, MemoryKind::kMapped,
                        program.file_mapped_bytes + kLaterCodeBytes});
  uint64_t other_bytes = 0;
  for (const MemoryLine& line : options.other_memory) {
    plan.lines.push_back(line);
    other_bytes += line.bytes;
  }
  plan.loading_bytes = program.private_bytes + program.file_mapped_bytes + demand.loading_bytes;
  plan.address_space_bytes = program.virtual_bytes + demand.address_space_bytes +
                             (own_threads + options.other_threads) * platform::ThreadStackBytes() +
                             kAddressSpaceSlackBytes + other_bytes;
  return plan;
}

MemoryBounds MemoryBounds::Of(const platform::MemoryLimits& system,
                              std::optional<uint64_t> limit_bytes) {
  MemoryBounds bounds = {.address_space_bytes = system.address_space_bytes};
  if (limit_bytes) {
    bounds.resident_bytes = limit_bytes;
    bounds.resident_source = "the limit that was set";
  }
  if (system.cgroup_bytes && (!limit_bytes || *system.cgroup_bytes < *limit_bytes)) {
    bounds.resident_bytes = system.cgroup_bytes;
    bounds.resident_source = "the limit of its control group";
  }
  return bounds;
}

bool Fits(const MemoryPlan& plan, const MemoryBounds& bounds) {
  return plan.peak_bytes() <= bounds.resident_bytes.value_or(UINT64_MAX) &&
         plan.address_space_bytes <= bounds.address_space_bytes.value_or(UINT64_MAX);
}

Result<std::vector<MemoryPlanOptions>> FindFitting(const ModelOutline& model,
                                                   const MemoryPlan& plan,
                                                   const MemoryBounds& bounds,
                                                   const platform::MemoryUsage& program) {
  std::vector<MemoryPlanOptions> found;
  const size_t own_bytes = KvElementBytes(plan.options.decoder.kv_type);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    const bool is_own = type == plan.options.decoder.kv_type;
    if (!is_own && KvElementBytes(type) >= own_bytes) continue;
    MemoryPlanOptions options = plan.options;
    options.decoder.kv_type = type;
    CRIA_ASSIGN_OR_RETURN(const auto longest, LongestFitting(model, options, bounds, program));
    if (longest) found.push_back(*longest);
  }
  return found;
}

Status CheckFits(const ModelOutline& model, const MemoryPlan& plan, const MemoryBounds& bounds,
                 const platform::MemoryUsage& program) {
  if (Fits(plan, bounds)) return {};
  std::string sentence;
  if (plan.peak_bytes() > bounds.resident_bytes.value_or(UINT64_MAX)) {
    sentence = Format("the model needs {} of memory with {}, more than the {} of {} (",
                      FormatBytes(plan.peak_bytes()), ContextText(plan.options),
                      FormatBytes(*bounds.resident_bytes), bounds.resident_source);
  } else {
    sentence = Format(
        "the model needs {} of address space with {}, more than the {} that ulimit -v allows (",
        FormatBytes(plan.address_space_bytes), ContextText(plan.options),
        FormatBytes(*bounds.address_space_bytes));
  }
  for (const MemoryLine& line : plan.lines) {
    if (line.kind == MemoryKind::kInFile) continue;
    if (line.bytes != 0) sentence += Format("{} {}, ", line.name(), FormatBytes(line.bytes));
  }
  sentence += Format("of which the kernel may reclaim {})", FormatBytes(plan.mapped_bytes()));
  platform::MemoryUsage larger = program;
  larger.private_bytes += kProgramVariationBytes;
  larger.virtual_bytes += kProgramVariationBytes;
  CRIA_ASSIGN_OR_RETURN(const auto fitting, FindFitting(model, plan, bounds, larger));
  Remedy remedy(RemedyKind::kFitMemory);
  for (const MemoryPlanOptions& options : fitting) {
    remedy.fitting_context_tokens[static_cast<size_t>(options.decoder.kv_type)] =
        static_cast<uint32_t>(options.decoder.context_tokens);
  }
  return Fail(ErrorCode::kOutOfMemory, std::move(sentence), remedy);
}

}  // namespace cria
