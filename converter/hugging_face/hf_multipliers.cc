#include "converter/hugging_face/hf_multipliers.h"

#include <cmath>

#include "core/format.h"

namespace cria {
namespace {

// Zero and negative numbers cannot be folded into weights, or make no sense.
Result<double> ReadPositive(const JsonFields& fields, std::string_view name, float otherwise) {
  CRIA_ASSIGN_OR_RETURN(const float value, fields.Number(name, otherwise));
  if (value > 0.0f && std::isfinite(value)) return value;
  return fields.Bad(ErrorCode::kUnsupported, name, Format("is {}, but must be more than 0", value));
}

Result<float> ReadSoftCap(const JsonFields& fields, const Family& family, std::string_view name,
                          std::optional<float> otherwise) {
  if (!family.Uses(name)) return 0.0f;
  if (fields.Find(name) == nullptr && (!otherwise || fields.object().contains(name))) return 0.0f;
  CRIA_ASSIGN_OR_RETURN(const double cap, ReadPositive(fields, name, otherwise.value_or(0.0f)));
  return static_cast<float>(cap);
}

}  // namespace

Result<WeightFolding> ReadHfMultipliers(const JsonFields& fields, const Family& family,
                                        const ModelConfig& config) {
  WeightFolding folding;
  if (family.experts != nullptr && family.experts->is_lfm2) {
    CRIA_ASSIGN_OR_RETURN(folding.routed_scaling_factor,
                          ReadPositive(fields, "routed_scaling_factor", 1.0f));
  }
  if (family.multipliers == Multipliers::kNone) return folding;
  if (family.multipliers == Multipliers::kGranite) {
    CRIA_ASSIGN_OR_RETURN(folding.embedding_multiplier,
                          ReadPositive(fields, "embedding_multiplier", 1.0f));
    CRIA_ASSIGN_OR_RETURN(folding.logits_divisor, ReadPositive(fields, "logits_scaling", 1.0f));
    CRIA_ASSIGN_OR_RETURN(folding.residual_multiplier,
                          ReadPositive(fields, "residual_multiplier", 1.0f));
    CRIA_ASSIGN_OR_RETURN(const double score_factor,
                          ReadPositive(fields, "attention_multiplier", 1.0f));
    folding.score_factor = score_factor * std::sqrt(config.head_dim);
    return folding;
  }
  if (family.multipliers == Multipliers::kGemma4) {
    folding.embedding_multiplier = std::sqrt(config.hidden_size);
    folding.has_unscaled_scores = true;
    return folding;
  }
  folding.adds_one_to_norms = true;
  if (family.multipliers == Multipliers::kNormsPlusOne) return folding;
  folding.embedding_multiplier = std::sqrt(config.hidden_size);
  if (family.multipliers == Multipliers::kGemmaWithScoreField) {
    CRIA_ASSIGN_OR_RETURN(const double scalar,
                          ReadPositive(fields, "query_pre_attn_scalar", 256.0f));
    folding.score_factor = std::sqrt(config.head_dim / scalar);
  }
  return folding;
}

Status ReadHfSoftCaps(const JsonFields& fields, const Family& family, ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(
      config.attn_logit_softcapping,
      ReadSoftCap(fields, family, "attn_logit_softcapping", family.attn_logit_softcapping));
  CRIA_ASSIGN_OR_RETURN(
      config.final_logit_softcapping,
      ReadSoftCap(fields, family, "final_logit_softcapping", family.final_logit_softcapping));
  return {};
}

}  // namespace cria
