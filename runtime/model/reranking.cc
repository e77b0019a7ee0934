#include "model/reranking.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace cria {

Status ValidateReranking(const Reranking& reranking, size_t hidden_size) {
  for (const std::string_view place : {kQueryPlace, kDocumentPlace}) {
    const size_t first = reranking.prompt.find(place);
    if (first == std::string_view::npos || reranking.prompt.rfind(place) != first) {
      return Fail(ErrorCode::kInvalidFile,
                  Format("the prompt for ranking does not have {} once", place));
    }
  }
  if (reranking.weight.size() != hidden_size) {
    return Fail(ErrorCode::kInvalidFile,
                Format("the weight for ranking has {} numbers, but hidden_size is {}",
                       reranking.weight.size(), hidden_size));
  }
  if (std::ranges::all_of(reranking.weight, [](float value) { return std::isfinite(value); })) {
    return {};
  }
  return Fail(ErrorCode::kInvalidFile, "the weight for ranking has a number that is not finite");
}

}  // namespace cria
