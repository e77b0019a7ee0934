#include "converter/hugging_face/hf_rope.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "converter/hugging_face/hf_rope_scaling.h"
#include "core/format.h"

namespace cria {
namespace {

using nlohmann::json;

constexpr std::string_view kPartialRotaryFactor = "partial_rotary_factor";
constexpr std::string_view kOutsideParameters =
    "is outside rope_parameters, where this architecture does not use it";

// The objects with the parameters of rotary scaling: transformers 5 calls it rope_parameters and
// puts rope_theta into it. At most one is not null.
struct RopeObjects {
  const json* parameters;
  const json* scaling;

  const json* any() const { return parameters != nullptr ? parameters : scaling; }
  std::string_view name() const {
    return parameters != nullptr ? "rope_parameters" : "rope_scaling";
  }
};

Result<RopeObjects> FindRope(const JsonFields& fields) {
  RopeObjects found = {fields.Find("rope_parameters"), fields.Find("rope_scaling")};
  // Transformers takes an empty rope_scaling for an absent one.
  if (found.scaling != nullptr && *found.scaling == json::object()) found.scaling = nullptr;
  if (found.parameters != nullptr && found.scaling != nullptr) {
    if (*found.parameters != *found.scaling) {
      return fields.Bad(ErrorCode::kInvalidFile, "rope_parameters",
                        "and rope_scaling are both given and differ; remove the wrong one");
    }
    found.scaling = nullptr;
  }
  if (found.any() != nullptr && !found.any()->is_object()) {
    return fields.Bad(ErrorCode::kInvalidFile, found.name(),
                      Format("is {}, but must be an object", JsonFields::Text(*found.any())));
  }
  return found;
}

// Whether each type of layers has an object with parameters of its own.
Result<bool> IsNestedByLayerType(const JsonFields& fields, const JsonFields& rope) {
  const json& object = rope.object();
  const size_t num_types = object.count(kFullAttention) + object.count(kSlidingAttention);
  if (num_types == 0 || num_types == object.size()) return num_types != 0;
  return fields.Bad(ErrorCode::kInvalidFile, rope.path(),
                    "has parameters beside the objects of types of layers; give each type its own");
}

// The object of one type of layers, which must exist.
Result<JsonFields> ObjectOf(const JsonFields& all, std::string_view layer_type) {
  const json* object = all.Find(layer_type);
  if (object != nullptr && object->is_object()) return all.Object(layer_type);
  return all.Bad(ErrorCode::kInvalidFile, layer_type,
                 "must be an object with the parameters of these layers");
}

Status RefusePartialRotary(const JsonFields& rope) {
  CRIA_ASSIGN_OR_RETURN(const float rotated, rope.Number(kPartialRotaryFactor, 1.0f));
  if (rotated == 1.0f) return {};
  return rope.Bad(ErrorCode::kUnsupported, kPartialRotaryFactor,
                  Format("is {}, which this version does not support", rotated));
}

// Reads how many channels of a head are rotated. A factor in the object has precedence over one
// outside it; without any, it is the family's, and null outside is 1.
Status ReadRotaryDim(const JsonFields& fields, const RopeObjects& found, const Family& family,
                     ModelConfig& config) {
  const bool is_inside = found.any() != nullptr && found.any()->contains(kPartialRotaryFactor);
  const JsonFields owner =
      is_inside ? JsonFields(*found.any(), fields.where(), found.name()) : fields;
  const json* value = owner.Find(kPartialRotaryFactor);
  const bool is_absent = !owner.object().contains(kPartialRotaryFactor);
  if (value == nullptr && !is_inside && !is_absent && !family.linear_attention) return {};
  const double factor = is_absent                                ? family.partial_rotary_factor
                        : value != nullptr && value->is_number() ? value->get<double>()
                                                                 : 0.0;
  const double rotated = config.head_dim * factor;
  if (!(rotated >= 2.0 && factor <= 1.0) || static_cast<uint32_t>(rotated) % 2 != 0) {
    return owner.Bad(ErrorCode::kUnsupported, kPartialRotaryFactor,
                     Format("is {}, but must make an even part of a head of {} channels",
                            is_absent          ? Format("{} by default", factor)
                            : value == nullptr ? "null"
                                               : JsonFields::Text(*value),
                            config.head_dim));
  }
  const auto rotary_dim = static_cast<uint32_t>(rotated);
  config.rotary_dim = rotary_dim == config.head_dim ? 0 : rotary_dim;
  return {};
}

// Whether alpha is used: with another type, it would be ignored.
bool HasNtkAlpha(const JsonFields& rope) {
  const json* type = rope.Find("rope_type") != nullptr ? rope.Find("rope_type") : rope.Find("type");
  return rope.Find("alpha") != nullptr && type != nullptr && *type == "dynamic";
}

Status ReadNtkAlpha(const JsonFields& rope, const ModelConfig& config, LayerKind& kind) {
  constexpr std::string_view kAlpha = "alpha";
  CRIA_ASSIGN_OR_RETURN(const float alpha, rope.Number(kAlpha));
  const double channels = config.head_dim;
  if (!(alpha > 0.0f) || config.head_dim < 4) {
    return rope.Bad(
        ErrorCode::kUnsupported, kAlpha,
        Format("is {} with heads of {} channels, but must be more than 0, with 4 or more", alpha,
               config.head_dim));
  }
  kind.rope_theta =
      static_cast<float>(kind.rope_theta * std::pow(double{alpha}, channels / (channels - 2.0)));
  return {};
}

// The factor of later queries. `scaling` is what has been read from `rope`.
Status ReadQueryScaling(const JsonFields& rope, const RopeScaling& scaling, ModelConfig& config) {
  constexpr std::string_view kBeta = "llama_4_scaling_beta";
  CRIA_ASSIGN_OR_RETURN(config.llama_4_scaling_beta, rope.Number(kBeta));
  if (!(config.llama_4_scaling_beta >= 0.0f)) {
    return rope.Bad(ErrorCode::kUnsupported, kBeta,
                    Format("is {}, but must not be below 0", config.llama_4_scaling_beta));
  }
  std::optional<uint32_t> positions;
  // Types that have it are known already.
  if (scaling.original_max_position_embeddings != 0) {
    positions = scaling.original_max_position_embeddings;
  } else {
    CRIA_ASSIGN_OR_RETURN(positions, rope.Integer("original_max_position_embeddings"));
  }
  if (*positions == 0) {
    return rope.Bad(ErrorCode::kInvalidFile, "original_max_position_embeddings", "is 0");
  }
  if (config.llama_4_scaling_beta != 0.0f) config.llama_4_scaling_positions = *positions;
  return {};
}

// In layers with a window, Olmo 3 has the base of the family, unless their object has another.
Result<float> ReadOlmo3WindowTheta(const JsonFields& fields, const Family& family,
                                   const RopeObjects& found) {
  constexpr std::string_view kTheta = "rope_theta";
  CRIA_ASSIGN_OR_RETURN(const float outer, fields.Number(kTheta, family.rope_theta));
  const json* own = found.parameters;
  if (own != nullptr && own->contains(kSlidingAttention)) own = &own->at(kSlidingAttention);
  const bool has_own = own != nullptr && own->is_object() && own->contains(kTheta);
  if (outer == family.rope_theta || has_own) return family.rope_theta;
  return fields.Bad(ErrorCode::kUnsupported, kTheta,
                    Format("is {}, but layers with a window have {} then; give each type of layers "
                           "its own in rope_parameters",
                           outer, family.rope_theta));
}

// For layers with and without a window, the older form has different fields.
Status ReadGemma3Rope(const JsonFields& fields, const Family& family, std::string_view layer_type,
                      const ModelConfig& config, LayerKind& kind) {
  constexpr float kDefaultLocalTheta = 10000.0f;
  const bool is_full = layer_type == kFullAttention;
  CRIA_ASSIGN_OR_RETURN(const RopeObjects found, FindRope(fields));
  if (is_full) {
    CRIA_ASSIGN_OR_RETURN(kind.rope_theta, fields.Number("rope_theta", family.rope_theta));
  } else if (family.rope_fields == RopeFields::kOlmo3) {
    CRIA_ASSIGN_OR_RETURN(kind.rope_theta, ReadOlmo3WindowTheta(fields, family, found));
  } else {
    CRIA_ASSIGN_OR_RETURN(kind.rope_theta,
                          fields.Number("rope_local_base_freq", kDefaultLocalTheta));
  }
  if (found.any() == nullptr) return {};
  const JsonFields all(*found.any(), fields.where(), found.name());
  CRIA_ASSIGN_OR_RETURN(const bool is_nested, IsNestedByLayerType(fields, all));
  if (is_nested == (found.parameters == nullptr) && !all.object().empty()) {
    return fields.Bad(ErrorCode::kInvalidFile, found.name(),
                      is_nested ? "has objects for types of layers, which only rope_parameters has"
                                : "must have an object for each type of layers");
  }
  if (!is_nested && !is_full) return {};
  // Transformers ignores the older name of the type here.
  if (!is_nested && all.Find("rope_type") == nullptr && all.Find("type") != nullptr) {
    return all.Bad(ErrorCode::kUnsupported, "type",
                   "is given without rope_type; call it rope_type if it is meant");
  }
  if (is_nested && all.Find(layer_type) == nullptr) return {};
  CRIA_ASSIGN_OR_RETURN(const JsonFields rope, is_nested ? ObjectOf(all, layer_type) : all);
  CRIA_RETURN_IF_ERROR(RefusePartialRotary(rope));
  CRIA_ASSIGN_OR_RETURN(kind.rope_theta, rope.Number("rope_theta", kind.rope_theta));
  CRIA_ASSIGN_OR_RETURN(kind.rope_scaling, ReadHfRopeScaling(rope, rope, family, config, kind));
  return {};
}

// Without an object, the class has parameters of its own for each type of layers.
Status ReadLfm3Rope(const JsonFields& fields, const Family& family, std::string_view layer_type,
                    const ModelConfig& config, LayerKind& kind) {
  static const json kDefaults = {
      {kSlidingAttention, {{"rope_type", "default"}, {"rope_theta", 10000.0}}},
      {kFullAttention,
       {{"rope_type", "proportional"}, {"rope_theta", 1e6}, {kPartialRotaryFactor, 0.5}}}};
  static const json kGemma4Defaults = {
      {kSlidingAttention, kDefaults[kSlidingAttention]},
      {kFullAttention,
       {{"rope_type", "proportional"}, {"rope_theta", 1e6}, {kPartialRotaryFactor, 0.25}}}};
  const bool is_gemma4 = family.rope_fields == RopeFields::kGemma4;
  if (is_gemma4 && fields.Find("rope_scaling") != nullptr) {
    return fields.Bad(ErrorCode::kUnsupported, "rope_scaling",
                      "is given, but this architecture has rope_parameters");
  }
  if (fields.Find("rope_theta") != nullptr) {
    return fields.Bad(ErrorCode::kUnsupported, "rope_theta", kOutsideParameters);
  }
  CRIA_ASSIGN_OR_RETURN(const RopeObjects found, FindRope(fields));
  const json& object = found.any() != nullptr ? *found.any()
                       : is_gemma4            ? kGemma4Defaults
                                              : kDefaults;
  const JsonFields all(object, fields.where(), found.name());
  CRIA_ASSIGN_OR_RETURN(const JsonFields rope, ObjectOf(all, layer_type));
  std::optional<float> theta = family.rope_theta;
  if (is_gemma4) theta.reset();
  CRIA_ASSIGN_OR_RETURN(kind.rope_theta, rope.Number("rope_theta", theta));
  CRIA_ASSIGN_OR_RETURN(kind.rope_scaling, ReadHfRopeScaling(rope, rope, family, config, kind));
  if (kind.rope_scaling.type == RopeScaling::Type::kProportional) return {};
  return RefusePartialRotary(rope);
}

}  // namespace

Status ReadHfRope(const JsonFields& fields, const Family& family, std::string_view layer_type,
                  ModelConfig& config, LayerKind& kind) {
  if (family.rope_fields == RopeFields::kGemma3 || family.rope_fields == RopeFields::kOlmo3) {
    return ReadGemma3Rope(fields, family, layer_type, config, kind);
  }
  if (family.rope_fields == RopeFields::kLfm3 || family.rope_fields == RopeFields::kGemma4) {
    return ReadLfm3Rope(fields, family, layer_type, config, kind);
  }
  CRIA_ASSIGN_OR_RETURN(kind.rope_theta, fields.Number("rope_theta", family.rope_theta));
  CRIA_ASSIGN_OR_RETURN(RopeObjects found, FindRope(fields));
  const bool is_partial =
      family.rope_fields == RopeFields::kPhi3 || family.rope_fields == RopeFields::kPartial;
  if (is_partial) CRIA_RETURN_IF_ERROR(ReadRotaryDim(fields, found, family, config));
  json defaults;
  if (found.any() == nullptr) {
    if (family.default_rope_parameters.empty()) return {};
    if (fields.Find("rope_theta") != nullptr) {
      return fields.Bad(ErrorCode::kUnsupported, "rope_theta", kOutsideParameters);
    }
    defaults = json::parse(family.default_rope_parameters);
    found.parameters = &defaults;
  }
  const JsonFields all(*found.any(), fields.where(), found.name());
  CRIA_ASSIGN_OR_RETURN(const bool is_nested, IsNestedByLayerType(fields, all));
  if (is_nested && family.rope_fields != RopeFields::kSharedOrByLayerType) {
    return fields.Bad(ErrorCode::kUnsupported, found.name(),
                      "has objects for types of layers, which this architecture does not use");
  }
  CRIA_ASSIGN_OR_RETURN(const JsonFields rope, is_nested ? ObjectOf(all, layer_type) : all);
  if (!is_partial) CRIA_RETURN_IF_ERROR(RefusePartialRotary(rope));
  CRIA_ASSIGN_OR_RETURN(kind.rope_theta, rope.Number("rope_theta", kind.rope_theta));
  if (family.has_ntk_alpha && HasNtkAlpha(rope)) return ReadNtkAlpha(rope, config, kind);
  CRIA_ASSIGN_OR_RETURN(kind.rope_scaling,
                        ReadHfRopeScaling(is_nested ? rope : fields, rope, family, config, kind));
  if (family.qk_norm_after_rope && kind.rope_scaling.attention_factor != 1.0f) {
    // The norms would nearly undo it.
    return rope.Bad(ErrorCode::kUnsupported, "attention_factor",
                    Format("is {}, which this version does not support for this architecture",
                           kind.rope_scaling.attention_factor));
  }
  if (family.has_query_scaling) return ReadQueryScaling(rope, kind.rope_scaling, config);
  return {};
}

}  // namespace cria
