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
  return regions;
}

BatchPlacement::BatchPlacement(const DecoderShape& shape, const Regions& regions,
                               const ArenaView& arena)
    : chunk_tokens_(shape.options.chunk_tokens),
      max_runs_(shape.options.num_sequences),
      rows_(arena.Pointer<BatchRow>(regions.rows)),
      logit_rows_(arena.Pointer<uint32_t>(regions.logit_rows)),
      runs_(arena.Pointer<ops::AttentionRows>(regions.runs)) {}

void BatchPlacement::Clear() { num_rows_ = num_runs_ = num_logit_rows_ = 0; }

void BatchPlacement::Add(const BatchRun& run) {
  last_run_ = run;
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
    rows[i] = {.position = static_cast<uint32_t>(position),
               .cache_row = static_cast<uint32_t>(table.Row(position))};
  }
}

}  // namespace cria
