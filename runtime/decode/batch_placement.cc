#include "decode/batch_placement.h"

namespace cria {

BatchPlacement::Regions BatchPlacement::Plan(const DecoderShape& shape, ArenaLayout& layout) {
  const DecoderOptions& options = shape.options;
  const uint64_t num_groups = KvPages::Groups(ShapeOfKvPages(shape.config, options)).size();
  Regions regions;
  regions.rows = layout.Add("rows of a batch", num_groups * options.chunk_tokens * sizeof(BatchRow),
                            kWholeLife);
  regions.logit_rows =
      layout.Add("logit rows of a batch", options.chunk_tokens * sizeof(uint32_t), kWholeLife);
  regions.runs =
      layout.Add("runs of a batch", num_groups * options.num_sequences * sizeof(ops::AttentionRows),
                 kWholeLife);
  regions.states =
      layout.Add("runs in recurrent layers",
                 shape.config.has_recurrent_layers() ? options.num_sequences * sizeof(StateRun) : 0,
                 kWholeLife);
  regions.turns = RopeTurns::Plan(shape, layout);
  return regions;
}

BatchPlacement::BatchPlacement(const DecoderShape& shape, const Regions& regions,
                               const ArenaView& arena, const RopeTables& ropes)
    : num_groups_(KvPages::Groups(ShapeOfKvPages(shape.config, shape.options)).size()),
      chunk_tokens_(shape.options.chunk_tokens),
      max_runs_(shape.options.num_sequences),
      rows_(arena.Pointer<BatchRow>(regions.rows)),
      logit_rows_(arena.Pointer<uint32_t>(regions.logit_rows)),
      runs_(arena.Pointer<ops::AttentionRows>(regions.runs)),
      states_(arena.Pointer<StateRun>(regions.states)),
      turns_(shape, regions.turns, arena, ropes) {}

void BatchPlacement::Clear() { num_rows_ = num_runs_ = num_states_ = num_logit_rows_ = 0; }

void BatchPlacement::Add(const BatchRun& run, const SequenceShift& shift) {
  last_run_ = run;
  turns_.Set(run.sequence, shift);
  ++num_runs_;
  num_rows_ += run.num_tokens;
  for (size_t i = run.num_logits; i > 0; --i) {
    logit_rows_[num_logit_rows_++] = static_cast<uint32_t>(num_rows_ - i);
  }
}

void BatchPlacement::Place(size_t group, const ops::KvPageTable& table) {
  const size_t num_tokens = last_run_.num_tokens;
  runs(group).back() = {
      .table = table, .first_position = last_run_.first_position, .num_rows = num_tokens};
  BatchRow* const rows = rows_ + group * chunk_tokens_ + num_rows_ - num_tokens;
  for (size_t i = 0; i < num_tokens; ++i) {
    const size_t position = last_run_.first_position + i;
    rows[i] = {.sequence = last_run_.sequence,
               .position = static_cast<uint32_t>(position),
               .cache_row = static_cast<uint32_t>(table.Row(position))};
  }
}

void BatchPlacement::KeepLogitRows() {
  for (size_t group = 0; group < num_groups_; ++group) {
    BatchRow* const rows = rows_ + group * chunk_tokens_;
    for (size_t i = 0; i < num_logit_rows_; ++i) rows[i] = rows[logit_rows_[i]];
  }
  size_t num_kept = 0;
  size_t end_row = 0;
  size_t end_logit = 0;
  for (size_t run = 0; run < num_runs_; ++run) {
    const size_t num_rows = runs_[run].num_rows;
    const size_t first_logit = end_logit;
    end_row += num_rows;
    while (end_logit < num_logit_rows_ && logit_rows_[end_logit] < end_row) ++end_logit;
    const size_t num_logits = end_logit - first_logit;
    if (num_logits == 0) continue;
    for (size_t group = 0; group < num_groups_; ++group) {
      ops::AttentionRows* const runs = runs_ + group * max_runs_;
      runs[num_kept] = runs[run];
      // A run's logits are those of its last rows.
      runs[num_kept].first_position += num_rows - num_logits;
      runs[num_kept].num_rows = num_logits;
    }
    ++num_kept;
  }
  num_runs_ = num_kept;
  num_rows_ = num_logit_rows_;
  for (size_t i = 0; i < num_rows_; ++i) logit_rows_[i] = static_cast<uint32_t>(i);
}

}  // namespace cria
