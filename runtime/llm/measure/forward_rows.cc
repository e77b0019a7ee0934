#include "llm/measure/forward_rows.h"

#include <algorithm>
#include <vector>

namespace cria {

Status ForwardRows(std::span<const ModelSequence> sequences, std::span<const int32_t> tokens,
                   size_t first_position, size_t num_rows, const VisitLogits& visit) {
  size_t chunk = tokens.size();
  for (const ModelSequence& each : sequences) chunk = std::min(chunk, each.model->chunk_tokens());
  std::vector<std::span<const float>> logits(sequences.size());
  const size_t first_row = tokens.size() - num_rows;
  for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const size_t end = std::min(begin + chunk, tokens.size());
    const size_t wanted = end - std::clamp(first_row, begin, end);
    for (const ModelSequence& each : sequences) {
      CRIA_RETURN_IF_ERROR(each.model->ForwardSequence(each.id, tokens.subspan(begin, end - begin),
                                                       first_position + begin, wanted));
    }
    for (size_t row = 0; row < wanted; ++row) {
      for (size_t i = 0; i < sequences.size(); ++i) {
        CRIA_ASSIGN_OR_RETURN(logits[i], sequences[i].model->Logits(row));
      }
      CRIA_RETURN_IF_ERROR(visit(end - wanted + row, logits));
    }
  }
  return {};
}

}  // namespace cria
