#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "decode/batch.h"
#include "decode/decoder_options.h"
#include "decode/recurrent_states.h"
#include "decode/rope_turns.h"
#include "ops/attention.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Where a row of a batch stands.
struct BatchRow {
  SequenceId sequence;
  uint32_t position;   // In its sequence.
  uint32_t cache_row;  // Among the rows of all pages of a group.
};

// Where the rows of a batch stand in their sequences and in the KV cache, and which of them are
// followed by logits.
class BatchPlacement {
 public:
  struct Regions {
    ArenaLayout::RegionId rows;        // BatchRow [groups of pages][chunk]
    ArenaLayout::RegionId logit_rows;  // uint32_t [chunk]
    ArenaLayout::RegionId runs;        // ops::AttentionRows [groups of pages][num_sequences]
    ArenaLayout::RegionId states;      // StateRun [num_sequences]
    RopeTurns::Regions turns;
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);

  // `ropes` must outlive the object.
  BatchPlacement(const DecoderShape& shape, const Regions& regions, const ArenaView& arena,
                 const RopeTables& ropes);

  // Begins a batch without runs.
  void Clear();
  // Adds a run behind the others, of a sequence with this shift. Place must be called for each
  // group of pages before the next run.
  void Add(const BatchRun& run, const SequenceShift& shift);
  // Says where the rows of the last run stand in the layers of a group.
  void Place(size_t group, const ops::KvPageTable& table);

  // Says what the last run does in recurrent layers.
  void PlaceState(const StateRun& run) { states_[num_states_++] = run; }

  // All rows, in the layers of a group.
  std::span<const BatchRow> rows(size_t group) const {
    return {rows_ + group * chunk_tokens_, num_rows_};
  }
  // The runs of a group: their tables, positions and numbers of rows. The rest is what a layer
  // attends with, and the layer writes it.
  std::span<ops::AttentionRows> runs(size_t group) const {
    return {runs_ + group * max_runs_, num_runs_};
  }
  // The shift of a run's sequence in layers with this rope.
  ops::KeyShift shift(SequenceId sequence, const RopeTableView& rope) const {
    return turns_.Of(sequence, rope);
  }
  // The runs in recurrent layers; none if the model has no such layers.
  std::span<const StateRun> states() const { return {states_, num_states_}; }
  // The rows that are followed by logits, in ascending order.
  std::span<const uint32_t> logit_rows() const { return {logit_rows_, num_logit_rows_}; }
  // Leaves only these rows: they become the first rows, and runs without any of them end. No layer
  // stores anything after that.
  void KeepLogitRows();

 private:
  const size_t num_groups_;
  const size_t chunk_tokens_;
  const size_t max_runs_;
  BatchRow* const rows_;
  uint32_t* const logit_rows_;
  ops::AttentionRows* const runs_;
  StateRun* const states_;
  RopeTurns turns_;
  BatchRun last_run_;
  size_t num_rows_ = 0;
  size_t num_runs_ = 0;
  size_t num_states_ = 0;
  size_t num_logit_rows_ = 0;
};

}  // namespace cria
