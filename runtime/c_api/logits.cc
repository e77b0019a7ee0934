#include "c_api/logits.h"

#include <algorithm>

#include "c_api/failure.h"
#include "c_api/texts.h"

namespace cria::c_api {

Result<bool> LogitBuffer::Prepare(const LoadedModel& model) const {
  CRIA_RETURN_IF_ERROR(CheckNotNull(num_logits, "num_logits"));
  *num_logits = model.engine->decoder().vocab_size();
  if (logits == nullptr) return false;
  CRIA_RETURN_IF_ERROR(CheckCapacity(*num_logits, capacity, "logits"));
  return true;
}

void LogitBuffer::Fill(std::span<const float> values) const { std::ranges::copy(values, logits); }

}  // namespace cria::c_api
