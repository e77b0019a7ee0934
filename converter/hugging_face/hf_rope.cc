#include "converter/hugging_face/hf_rope.h"

#include <array>
#include <format>
#include <optional>
#include <string>
#include <string_view>

#include "converter/yarn_magnitude.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

struct TypeName {
  std::string_view name;
  RopeScaling::Type type;
};
constexpr std::array kTypeNames = {
    TypeName{"default", RopeScaling::Type::kNone}, TypeName{"linear", RopeScaling::Type::kLinear},
    TypeName{"dynamic", RopeScaling::Type::kDynamic},
    TypeName{"llama3", RopeScaling::Type::kLlama3}, TypeName{"yarn", RopeScaling::Type::kYarn}};

// Fields of related models, and fields that change the frequencies: none is supported.
constexpr std::array<std::string_view, 4> kForeignFields = {"alpha", "mrope_section", "long_factor",
                                                            "short_factor"};

// The object with the parameters of rotary scaling, or null. transformers 5 calls it
// rope_parameters and puts rope_theta into it.
Result<const json*> FindRope(const JsonFields& fields) {
  const json* parameters = fields.Find("rope_parameters");
  const json* scaling = fields.Find("rope_scaling");
  if (parameters != nullptr && scaling != nullptr && *parameters != *scaling) {
    return fields.Bad(ErrorCode::kInvalidFile, "rope_parameters",
                      "and rope_scaling are both given and differ; remove the wrong one");
  }
  const json* rope = parameters != nullptr ? parameters : scaling;
  if (rope != nullptr && !rope->is_object()) {
    return fields.Bad(ErrorCode::kInvalidFile,
                      parameters != nullptr ? "rope_parameters" : "rope_scaling",
                      std::format("is {}, but must be an object", JsonFields::Text(*rope)));
  }
  return rope;
}

// Whether each type of layers has an object with parameters of its own.
Result<bool> IsNestedByLayerType(const JsonFields& fields, const JsonFields& rope) {
  const json& object = rope.object();
  const size_t num_types = object.count(kFullAttention) + object.count(kSlidingAttention);
  if (num_types == 0 || num_types == object.size()) return num_types != 0;
  return fields.Bad(ErrorCode::kInvalidFile, rope.path(),
                    "has parameters beside the objects of types of layers; give each type its own");
}

Status RefuseForeignFields(const JsonFields& rope) {
  for (const std::string_view name : kForeignFields) {
    if (rope.Find(name) == nullptr) continue;
    return rope.Bad(ErrorCode::kUnsupported, name, "is given, which this version does not support");
  }
  CRIA_ASSIGN_OR_RETURN(const float rotated, rope.Number("partial_rotary_factor", 1.0f));
  if (rotated == 1.0f) return {};
  return rope.Bad(ErrorCode::kUnsupported, "partial_rotary_factor",
                  std::format("is {}, which this version does not support", rotated));
}

Result<RopeScaling::Type> ReadType(const JsonFields& rope) {
  // Older checkpoints have "type"; if both exist, transformers uses "rope_type".
  const std::string_view key = rope.Find("rope_type") != nullptr ? "rope_type" : "type";
  CRIA_ASSIGN_OR_RETURN(const std::string type, rope.String(key, ""));
  for (const TypeName& known : kTypeNames) {
    if (known.name == type) return known.type;
  }
  return rope.Bad(ErrorCode::kUnsupported, key,
                  std::format("is \"{}\"; this version supports default, linear, dynamic, llama3 "
                              "and yarn",
                              Quotable(type)));
}

Status ReadLlama3(const JsonFields& rope, RopeScaling& scaling) {
  CRIA_ASSIGN_OR_RETURN(scaling.factor, rope.Number("factor"));
  CRIA_ASSIGN_OR_RETURN(scaling.low_freq_factor, rope.Number("low_freq_factor"));
  CRIA_ASSIGN_OR_RETURN(scaling.high_freq_factor, rope.Number("high_freq_factor"));
  return {};
}

Status ReadYarn(const JsonFields& rope, uint32_t max_position_embeddings, RopeScaling& scaling) {
  // As in transformers, the field must exist, and null means the ratio of the contexts.
  std::optional<float> otherwise_factor;
  if (rope.object().contains("factor")) {
    otherwise_factor = static_cast<float>(max_position_embeddings) /
                       static_cast<float>(scaling.original_max_position_embeddings);
  }
  CRIA_ASSIGN_OR_RETURN(scaling.factor, rope.Number("factor", otherwise_factor));
  CRIA_ASSIGN_OR_RETURN(scaling.beta_fast, rope.Number("beta_fast", scaling.beta_fast));
  CRIA_ASSIGN_OR_RETURN(scaling.beta_slow, rope.Number("beta_slow", scaling.beta_slow));
  CRIA_ASSIGN_OR_RETURN(scaling.truncate, rope.Bool("truncate", scaling.truncate));
  CRIA_ASSIGN_OR_RETURN(const float mscale, rope.Number("mscale", 0.0f));
  CRIA_ASSIGN_OR_RETURN(const float mscale_all_dim, rope.Number("mscale_all_dim", 0.0f));
  // As in transformers, zero counts as absent.
  const bool is_weighted = mscale != 0.0f && mscale_all_dim != 0.0f;
  const float otherwise = is_weighted ? YarnMagnitude(scaling.factor, mscale) /
                                            YarnMagnitude(scaling.factor, mscale_all_dim)
                                      : YarnMagnitude(scaling.factor, 1.0f);
  CRIA_ASSIGN_OR_RETURN(scaling.attention_factor, rope.Number("attention_factor", otherwise));
  return {};
}

// The context that the model was trained with before its frequencies were scaled. A field outside
// the object has precedence, as in Phi 3, unless types of layers have objects of their own; if
// there is none, it is max_position_embeddings.
Result<uint32_t> ReadOriginalPositions(const JsonFields& fields, const JsonFields& rope,
                                       uint32_t max_position_embeddings) {
  constexpr std::string_view kName = "original_max_position_embeddings";
  CRIA_ASSIGN_OR_RETURN(
      const uint32_t positions,
      (fields.Find(kName) != nullptr ? fields : rope).Integer(kName, max_position_embeddings));
  if (positions != 0) return positions;
  return rope.Bad(ErrorCode::kInvalidFile, kName, "is 0");
}

Result<RopeScaling> ReadScaling(const JsonFields& fields, const JsonFields& rope,
                                uint32_t max_position_embeddings) {
  RopeScaling scaling;
  CRIA_ASSIGN_OR_RETURN(scaling.type, ReadType(rope));
  switch (scaling.type) {
    case RopeScaling::Type::kNone:
    case RopeScaling::Type::kLongrope:  // ReadType does not know it.
      break;
    case RopeScaling::Type::kLinear:
    case RopeScaling::Type::kDynamic: {
      CRIA_ASSIGN_OR_RETURN(scaling.factor, rope.Number("factor"));
      break;
    }
    case RopeScaling::Type::kLlama3:
    case RopeScaling::Type::kYarn: {
      CRIA_ASSIGN_OR_RETURN(scaling.original_max_position_embeddings,
                            ReadOriginalPositions(fields, rope, max_position_embeddings));
      CRIA_RETURN_IF_ERROR(scaling.type == RopeScaling::Type::kLlama3
                               ? ReadLlama3(rope, scaling)
                               : ReadYarn(rope, max_position_embeddings, scaling));
      break;
    }
  }
  return scaling;
}

}  // namespace

Status ReadHfRope(const JsonFields& fields, std::string_view layer_type, const ModelConfig& config,
                  LayerKind& kind) {
  constexpr float kDefaultTheta = 10000.0f;
  CRIA_ASSIGN_OR_RETURN(kind.rope_theta, fields.Number("rope_theta", kDefaultTheta));
  CRIA_ASSIGN_OR_RETURN(const json* object, FindRope(fields));
  if (object == nullptr) return {};
  const JsonFields all(
      *object, fields.where(),
      fields.Find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling");
  CRIA_ASSIGN_OR_RETURN(const bool is_nested, IsNestedByLayerType(fields, all));
  if (is_nested && (all.Find(layer_type) == nullptr || !all.Find(layer_type)->is_object())) {
    return all.Bad(ErrorCode::kInvalidFile, layer_type,
                   "must be an object with the parameters of these layers");
  }
  const JsonFields rope = is_nested ? all.Object(layer_type) : all;
  CRIA_RETURN_IF_ERROR(RefuseForeignFields(rope));
  CRIA_ASSIGN_OR_RETURN(kind.rope_theta, rope.Number("rope_theta", kind.rope_theta));
  CRIA_ASSIGN_OR_RETURN(kind.rope_scaling, ReadScaling(is_nested ? rope : fields, rope,
                                                       config.max_position_embeddings));
  return {};
}

}  // namespace cria
