#include "converter/gguf/gguf_reranking.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace cria {
namespace {

constexpr uint32_t kRankPooling = 4;  // llama.cpp's enum llama_pooling_type.
constexpr std::string_view kRows = "cls.output.weight";
constexpr std::string_view kPromptKey = "tokenizer.chat_template.rerank";

// The first row is that of "yes": llama.cpp takes the first answer's probability.
Status CheckLabels(const GgufMetadata& metadata, const std::string& key) {
  if (!metadata.Has(key)) return {};
  CRIA_ASSIGN_OR_RETURN(const StringList* const labels, metadata.Array<StringList>(key));
  if (labels->size() == 2 && (*labels)[0] == "yes" && (*labels)[1] == "no") return {};
  return metadata.Bad(key, "is not \"yes\" and \"no\", and other answers are not supported",
                      ErrorCode::kUnsupported);
}

}  // namespace

Result<std::optional<RerankingMaterial>> TakeGgufReranking(const GgufMetadata& metadata,
                                                           std::vector<TensorSource>& tensors) {
  CRIA_ASSIGN_OR_RETURN(const std::string architecture,
                        metadata.String("general.architecture", ""));
  const std::string pooling_key = architecture + ".pooling_type";
  CRIA_ASSIGN_OR_RETURN(const uint32_t pooling, metadata.Integer(pooling_key, 0));
  if (pooling != kRankPooling) return std::nullopt;
  CRIA_RETURN_IF_ERROR(CheckLabels(metadata, architecture + ".classifier.output_labels"));
  const auto rows = std::ranges::find(tensors, kRows, &TensorSource::name);
  if (rows == tensors.end() || rows->shape.size() != 2 || rows->shape[0] != 2) {
    return metadata.Bad(
        pooling_key, Format("is {} (rank), but {} has not the rows of two answers", pooling, kRows),
        ErrorCode::kUnsupported);
  }
  RerankingMaterial material;
  CRIA_ASSIGN_OR_RETURN(material.prompt, metadata.String(kPromptKey));
  CRIA_ASSIGN_OR_RETURN(material.weight, DifferenceOfRows(*rows, 0, 1));
  tensors.erase(rows);
  return material;
}

}  // namespace cria
