#pragma once

#include <tuple>

#include "llm/engine.h"

namespace cria::ranks {

// Who needs which fields of EngineOptions if several ranks compute a model together: each field is
// a row of one of these lists. Flags and the C API are no part of it: they choose what they offer.

// All ranks have the values of rank 0.
inline constexpr auto kSharedEngineFields = std::tuple(
    &EngineOptions::num_threads, &EngineOptions::num_batch_threads, &EngineOptions::context_tokens,
    &EngineOptions::num_sequences, &EngineOptions::num_kept_sequences,
    &EngineOptions::default_kept_sequences, &EngineOptions::num_checkpoints,
    &EngineOptions::chunk_tokens, &EngineOptions::kv_type, &EngineOptions::max_logit_bytes,
    &EngineOptions::min_logit_rows, &EngineOptions::min_revocable_tokens,
    &EngineOptions::memory_limit_bytes, &EngineOptions::ignore_memory_limits);

// Only rank 0 does what these are for: all others have the defaults.
inline constexpr auto kFirstRankEngineFields =
    std::tuple(&EngineOptions::drafts, &EngineOptions::max_constraints,
               &EngineOptions::draft_model_path, &EngineOptions::other_memory,
               &EngineOptions::other_threads, &EngineOptions::num_texts, &EngineOptions::thermal);

// Each rank makes its own values.
inline constexpr auto kOwnEngineFields =
    std::tuple(&EngineOptions::packing, &EngineOptions::program, &EngineOptions::ranks,
               &EngineOptions::on_notice);

// Calls `function` with each row of a list.
template <typename Fields, typename Function>
constexpr void ForEachEngineField(const Fields& fields, const Function& function) {
  std::apply([&](const auto&... field) { (function(field), ...); }, fields);
}

// Does not compile if EngineOptions has more or fewer fields than the lists have rows: a new option
// needs its row, and here a name and the next number.
inline void CountEngineFields(const EngineOptions& options) {
  const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
               f20, f21, f22, f23, f24, f25] = options;
  static_cast<void>(f1);
}
static_assert(std::tuple_size_v<decltype(kSharedEngineFields)> +
                  std::tuple_size_v<decltype(kFirstRankEngineFields)> +
                  std::tuple_size_v<decltype(kOwnEngineFields)> ==
              25);

}  // namespace cria::ranks
