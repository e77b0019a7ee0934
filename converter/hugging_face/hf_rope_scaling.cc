#include "converter/hugging_face/hf_rope_scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converter/checkpoint/longrope_magnitude.h"
#include "converter/checkpoint/yarn_magnitude.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

using nlohmann::json;

struct TypeName {
  std::string_view name;
  RopeScaling::Type type;
};
constexpr std::array kTypeNames = {TypeName{"default", RopeScaling::Type::kNone},
                                   TypeName{"linear", RopeScaling::Type::kLinear},
                                   TypeName{"dynamic", RopeScaling::Type::kDynamic},
                                   TypeName{"llama3", RopeScaling::Type::kLlama3},
                                   TypeName{"yarn", RopeScaling::Type::kYarn},
                                   TypeName{"longrope", RopeScaling::Type::kLongrope}};
// For Phi 3, transformers takes older names for longrope's.
constexpr std::array kPhi3TypeNames = {TypeName{"default", RopeScaling::Type::kNone},
                                       TypeName{"longrope", RopeScaling::Type::kLongrope},
                                       TypeName{"su", RopeScaling::Type::kLongrope},
                                       TypeName{"yarn", RopeScaling::Type::kLongrope}};

// Gemma 4's are the first of them.
constexpr size_t kNumGemma4Types = 2;

// LFM3's and Gemma 4's.
constexpr std::string_view kProportional = "proportional";

// Fields of related models that change the frequencies: none is supported.
constexpr std::array<std::string_view, 3> kForeignFields = {"alpha", "short_mscale", "long_mscale"};
// Which pairs turn by the place in a picture. In a text, all places are the position.
constexpr std::string_view kSections = "mrope_section";
constexpr std::string_view kInterleavesSections = "mrope_interleaved";
// Only longrope's.
constexpr std::array<std::string_view, 2> kLongropeFields = {"long_factor", "short_factor"};

Status RefuseGiven(const JsonFields& rope, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (rope.Find(name) == nullptr) continue;
    return rope.Bad(ErrorCode::kUnsupported, name, "is given, which this version does not support");
  }
  return {};
}

Status CheckSections(const JsonFields& rope, const Family& family) {
  if (!family.Uses(kSections)) return RefuseGiven(rope, {&kSections, 1});
  if (!rope.object().contains(kSections)) return {};
  const json* sections = rope.Find(kSections);
  const bool is_list = sections != nullptr && sections->is_array() && sections->size() >= 3 &&
                       std::ranges::all_of(*sections, &json::is_number_unsigned);
  if (is_list) return {};
  return rope.Bad(ErrorCode::kInvalidFile, kSections, "must be a list of three numbers of pairs");
}

// Whether nothing but the base of the frequencies is given, which needs no type.
bool HasOnlyBase(const JsonFields& rope) {
  return std::ranges::all_of(rope.object().items(), [](const auto& item) {
    return item.key() == "rope_theta" || item.key() == "partial_rotary_factor" ||
           item.key() == kSections || item.key() == kInterleavesSections;
  });
}

Result<RopeScaling::Type> ReadType(const JsonFields& rope, const Family& family) {
  if (HasOnlyBase(rope)) return RopeScaling::Type::kNone;
  // Older checkpoints have "type"; if both exist, transformers uses "rope_type".
  const std::string_view key = rope.Find("rope_type") != nullptr ? "rope_type" : "type";
  CRIA_ASSIGN_OR_RETURN(const std::string type, rope.String(key, ""));
  const bool is_gemma4 = family.rope_fields == RopeFields::kGemma4;
  if ((family.rope_fields == RopeFields::kLfm3 || is_gemma4) && type == kProportional) {
    return RopeScaling::Type::kProportional;
  }
  const bool is_phi3 = family.rope_fields == RopeFields::kPhi3;
  const auto names = is_phi3     ? std::span<const TypeName>(kPhi3TypeNames)
                     : is_gemma4 ? std::span<const TypeName>(kTypeNames).first(kNumGemma4Types)
                                 : kTypeNames;
  const auto found = std::ranges::find(names, type, &TypeName::name);
  if (found != names.end()) return found->type;
  return rope.Bad(ErrorCode::kUnsupported, key,
                  Format("is \"{}\"; this version supports {}", Quotable(type),
                         is_phi3     ? "default and longrope for this architecture"
                         : is_gemma4 ? "default, linear and proportional for this architecture"
                                     : "default, linear, dynamic, llama3, yarn and longrope"));
}

// The number of pairs that turn is a whole number of a product that a float would round otherwise
// than transformers, so the factor is that of this number.
Status ReadProportional(const JsonFields& rope, uint32_t head_dim, RopeScaling& scaling) {
  constexpr std::string_view kName = "partial_rotary_factor";
  CRIA_ASSIGN_OR_RETURN(scaling.factor, rope.Number("factor", 1.0f));
  CRIA_RETURN_IF_ERROR(rope.Number(kName, 1.0f));
  const json* const given = rope.Find(kName);
  const double part = given == nullptr ? 1.0 : given->get<double>();
  const double turned = std::floor(part * head_dim / 2.0);
  if (!(turned >= 1.0 && part <= 1.0)) {
    return rope.Bad(
        ErrorCode::kUnsupported, kName,
        Format("is {}, but must be a part of the {} pairs of a head", part, head_dim / 2));
  }
  float& factor = scaling.partial_rotary_factor;
  factor = static_cast<float>(2.0 * turned / head_dim);
  if (std::floor(double{factor} * head_dim / 2.0) < turned) {
    factor = std::nextafter(factor, 1.0f);
  }
  return {};
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

Result<std::vector<float>> ReadFactors(const JsonFields& rope, std::string_view name,
                                       const ModelConfig& config) {
  CRIA_ASSIGN_OR_RETURN(const json* values, rope.Array(name));
  const size_t num_frequencies = config.rotary_channels() / 2;
  if (values->size() != num_frequencies) {
    return rope.Bad(
        ErrorCode::kInvalidFile, name,
        Format("has {} numbers, but heads have {} frequencies", values->size(), num_frequencies));
  }
  std::vector<float> factors;
  for (const json& value : *values) {
    if (!value.is_number() || !(value.get<float>() > 0.0f)) {
      return rope.Bad(ErrorCode::kInvalidFile, name,
                      Format("has {} instead of a number above 0", JsonFields::Text(value)));
    }
    factors.push_back(value.get<float>());
  }
  return factors;
}

Status ReadLongrope(const JsonFields& rope, const ModelConfig& config, RopeScaling& scaling) {
  CRIA_ASSIGN_OR_RETURN(scaling.short_factor, ReadFactors(rope, "short_factor", config));
  CRIA_ASSIGN_OR_RETURN(scaling.long_factor, ReadFactors(rope, "long_factor", config));
  double factor = static_cast<double>(config.max_position_embeddings) /
                  scaling.original_max_position_embeddings;
  if (rope.Find("factor") != nullptr) {
    CRIA_ASSIGN_OR_RETURN(const float given, rope.Number("factor"));
    factor = given;
  }
  if (factor > 1.0 && scaling.original_max_position_embeddings < 2) {
    return rope.Bad(ErrorCode::kInvalidFile, "original_max_position_embeddings", "is below 2");
  }
  CRIA_ASSIGN_OR_RETURN(
      scaling.attention_factor,
      rope.Number("attention_factor",
                  LongropeMagnitude(factor, scaling.original_max_position_embeddings)));
  return {};
}

// The context that the model was trained with before its frequencies were scaled. A field outside
// the object has precedence, as in Phi 3, unless types of layers have objects of their own; if
// there is none, it is max_position_embeddings. Phi 3 never has it inside the object.
Result<uint32_t> ReadOriginalPositions(const JsonFields& fields, const JsonFields& rope,
                                       const Family& family, const ModelConfig& config) {
  constexpr std::string_view kName = "original_max_position_embeddings";
  constexpr uint32_t kDefaultOfPhi3 = 4096;
  const bool is_phi3 = family.rope_fields == RopeFields::kPhi3;
  const JsonFields& owner = is_phi3 || fields.Find(kName) != nullptr ? fields : rope;
  CRIA_ASSIGN_OR_RETURN(
      const uint32_t positions,
      owner.Integer(kName, is_phi3 ? kDefaultOfPhi3 : config.max_position_embeddings));
  if (positions != 0) return positions;
  return rope.Bad(ErrorCode::kInvalidFile, kName, "is 0");
}

}  // namespace

Result<RopeScaling> ReadHfRopeScaling(const JsonFields& fields, const JsonFields& rope,
                                      const Family& family, const ModelConfig& config,
                                      const LayerKind& kind) {
  CRIA_RETURN_IF_ERROR(RefuseGiven(rope, kForeignFields));
  CRIA_RETURN_IF_ERROR(CheckSections(rope, family));
  RopeScaling scaling;
  CRIA_ASSIGN_OR_RETURN(scaling.type, ReadType(rope, family));
  if (scaling.type != RopeScaling::Type::kLongrope) {
    CRIA_RETURN_IF_ERROR(RefuseGiven(rope, kLongropeFields));
  }
  switch (scaling.type) {
    case RopeScaling::Type::kNone:
      break;
    case RopeScaling::Type::kLinear:
    case RopeScaling::Type::kDynamic: {
      CRIA_ASSIGN_OR_RETURN(scaling.factor, rope.Number("factor"));
      break;
    }
    case RopeScaling::Type::kProportional:
      CRIA_RETURN_IF_ERROR(ReadProportional(rope, config.head_dim_of(kind), scaling));
      break;
    case RopeScaling::Type::kLlama3:
    case RopeScaling::Type::kYarn:
    case RopeScaling::Type::kLongrope: {
      CRIA_ASSIGN_OR_RETURN(scaling.original_max_position_embeddings,
                            ReadOriginalPositions(fields, rope, family, config));
      if (scaling.type == RopeScaling::Type::kLlama3) {
        CRIA_RETURN_IF_ERROR(ReadLlama3(rope, scaling));
      } else if (scaling.type == RopeScaling::Type::kYarn) {
        CRIA_RETURN_IF_ERROR(ReadYarn(rope, config.max_position_embeddings, scaling));
      } else {
        CRIA_RETURN_IF_ERROR(ReadLongrope(rope, config, scaling));
      }
      break;
    }
  }
  return scaling;
}

}  // namespace cria
