#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"
#include "decode/decoder.h"
#include "llm/constraint.h"
#include "llm/drafting.h"
#include "llm/memory_plan.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/thermal_pacer.h"
#include "model/model_file.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "xnn/pack_cache.h"

namespace cria {

// A value of EngineOptions::context_tokens: as many tokens as the model was made for.
inline constexpr size_t kModelsOwnContext = SIZE_MAX;

// One struct, because all of them together decide one plan of memory and one way of loading.
struct EngineOptions {
  size_t num_threads = 0;        // For generating; 0: one for each fast core.
  size_t num_batch_threads = 0;  // For reading prompts; 0: as many as num_threads.
  // For all sequences together. 0: Engine::kDefaultContextTokens, or the model's own length if
  // shorter; kModelsOwnContext: the model's own length.
  size_t context_tokens = 0;
  size_t num_sequences = DecoderOptions{}.num_sequences;  // How many sessions run at once.
  // How many more texts stay in the cache while there is room (SequenceSlots); absent: as many as
  // `default_kept_sequences`, or none for a model whose sequences have memory of their own,
  // because it has windows or recurrent layers.
  std::optional<size_t> num_kept_sequences;
  size_t default_kept_sequences = 0;
  // Checkpoints of all sequences together, for models whose sequences could not become
  // shorter without them; absent: two, and two for each sequence.
  std::optional<size_t> num_checkpoints;
  size_t chunk_tokens = DecoderOptions{}.chunk_tokens;
  std::optional<KvType> kv_type = DecoderOptions{}.kv_type;  // Absent: DefaultKvType.
  // Change no text, only the time that generating takes. There are none on processors where a
  // product of several rows rounds differently from that of one (CanDraft).
  DraftOptions drafts;
  // How many constraints (NewConstraint) there may be at once; their memory is planned.
  size_t max_constraints = 0;
  // A model with the same vocabulary, much smaller, that makes drafts; empty: none.
  std::string draft_model_path;
  // One product computes as many rows of logits as fit into these bytes, at least one, or more if
  // drafts or min_logit_rows need them.
  uint64_t max_logit_bytes = 0;
  size_t min_logit_rows = 1;
  // DecoderOptions::revocable_tokens, unless drafts need more.
  size_t min_revocable_tokens = 1;
  xnn::PackingOptions packing;
  // Limits resident memory: private memory and the pages of mapped weights. The limits of the
  // control group and of address space are checked as well.
  std::optional<uint64_t> memory_limit_bytes;
  bool ignore_memory_limits = false;
  // What the program will take besides, such as the connections of a server, and how many threads
  // it will start: parts of the plan.
  std::vector<MemoryLine> other_memory;
  size_t other_threads = 0;
  // How many texts the program chooses at once, each with any options, and holds besides: a part of
  // the plan.
  size_t num_texts = 0;
  // Slows the model down before its processor becomes too hot.
  ThermalOptions thermal;
  // What the process is taken to use without this model; absent: what it uses when it is loaded.
  std::optional<platform::MemoryUsage> program;
  // Leads to the other ranks that compute the model together. It must outlive the engine.
  RankLink* ranks = &NoOtherRanks();
  // Told what a user may want to know, such as that there are no drafts here; may be null.
  std::function<void(std::string_view sentence)> on_notice;

  bool wants_drafts() const { return drafts.has_drafts() || !draft_model_path.empty(); }
  // With drafts: rows of logits of a token of each sequence and the longest draft behind them.
  size_t draft_rows() const { return num_sequences + drafts.max_tokens; }
  // With drafts: all of the longest may be refused, and the token before it be run again.
  size_t draft_revocable_tokens() const { return 1 + drafts.max_tokens; }
};

// What programs store keys and values in if the user names no type: int8, unless that changes the
// model's predictions too much, which the converter measures.
KvType DefaultKvType(bool prefers_f16_cache);

// The max_logit_bytes of programs that read the logits after every token. The output head is read
// once for these rows: 14 of a vocabulary of 128,256. So the private memory is at most 8.4 MB more
// than a chat's.
inline constexpr uint64_t kMeasuringLogitBytes = uint64_t{8} << 20;

// Whether this processor runs drafts with the same result as single tokens.
bool CanDraft(const ModelOutline& model);

// The options with which the model is loaded: defaults that depend on the model or the machine are
// filled in, and what the link to other ranks takes is a line of other_memory. With a link, `model`
// is what its TakePart left.
MemoryPlanOptions ResolveOptions(const ModelOutline& model, const EngineOptions& options,
                                 std::shared_ptr<const ModelOutline> draft_model = nullptr);

// The outline of EngineOptions::draft_model_path; null if that is empty.
Result<std::shared_ptr<const ModelOutline>> OutlineOfDraftModel(const EngineOptions& options,
                                                                const ModelFile& model);

// Fails if drafts are to come from two sources of logits.
Status CheckDrafters(const EngineOptions& options);

// Opens a file for EngineOptions::draft_model_path. Fails if its vocabulary is not that of `model`.
Result<ModelFile> OpenDraftModel(const std::string& path, const ModelFile& model);

// A loaded model with everything that is needed to generate. It cannot be moved, because its parts
// point at each other.
class Engine {
 public:
  static constexpr size_t kDefaultContextTokens = DecoderOptions{}.context_tokens;

  // Fails with kOutOfMemory, before it allocates memory, if the model does not fit the limits.
  static Result<std::unique_ptr<Engine>> Load(const std::string& path,
                                              const EngineOptions& options);
  static Result<std::unique_ptr<Engine>> Load(platform::File file, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // The memory that was planned; platform::ReadMemoryUsage returns what the process uses.
  const MemoryPlan& memory_plan() const { return plan_; }
  const ModelFile& file() const { return file_; }
  const ThreadPool& pool() const { return *pool_; }
  // Returns pool(), unless another number of threads was requested.
  const ThreadPool& batch_pool() const { return *batch_pool_; }
  const xnn::PackedWeights& weights() const { return *weights_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  // The model file's, or the last token's if it names none.
  Pooling pooling() const { return file_.pooling().value_or(Pooling::kLast); }
  // If it could not be parsed, rendering fails, but the model completes texts all the same.
  const ChatTemplate& chat_template() const { return chat_template_; }
  Decoder& decoder() { return *decoder_; }
  const Decoder& decoder() const { return *decoder_; }
  Scheduler& scheduler() { return *scheduler_; }
  // Null if there is no draft model.
  Engine* draft_engine() const { return draft_engine_.get(); }
  // Null if there is no limit of the temperature, or no sensor.
  const ThermalPacer* pacer() const { return pacer_ ? &*pacer_ : nullptr; }
  // There may be more sessions than sequences. The engine must outlive them. `with_drafts` has no
  // effect if the engine has no drafts.
  std::unique_ptr<Session> NewSession(bool with_drafts = true);
  // What makes drafts from logits: the draft model, or the model's own layer that guesses; null if
  // there is neither.
  std::unique_ptr<Drafter> NewDrafter();
  // Any thread may call this. Fails as Sampler::Create does.
  Result<Sampler> NewSampler(const SamplerOptions& options) const;
  // Any thread may call this. Fails with kOutOfMemory if there are max_constraints already. The
  // engine must outlive it.
  Result<std::unique_ptr<Constraint>> NewConstraint();

 private:
  using Pool = std::shared_ptr<const ThreadPool>;

  Engine(MemoryPlan plan, ModelFile file, Pool pool, Pool batch_pool);
  // Loads the weights and makes what runs them. `check_memory` is that of the packing options.
  Status Start(const MemoryPlanOptions& options, xnn::PackingOptions packing,
               std::function<Status()> check_memory, std::mutex* pool_mutex, RankLink& ranks);
  // Makes the pacer. Without a sensor there is none, and the user is told.
  void LimitHeat(const EngineOptions& options);

  MemoryPlan plan_;
  ModelFile file_;
  ChatTemplate chat_template_;  // Points into file_.
  Pool pool_;
  Pool batch_pool_;
  // Two models share the pools, or other ranks compute the model, too; otherwise null.
  std::unique_ptr<std::mutex> pool_mutex_;
  std::unique_ptr<Engine> draft_engine_;
  std::optional<Tokenizer> tokenizer_;  // Points into file_.
  // Null: there are no constraints.
  std::unique_ptr<ConstraintTokens> constraint_tokens_;
  std::optional<xnn::PackedWeights> weights_;
  std::unique_ptr<Decoder> decoder_;
  std::optional<ThermalPacer> pacer_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace cria
