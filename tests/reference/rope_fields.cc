#include "reference/rope_fields.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace cria::reference {

using nlohmann::json;

ReferenceRopeScaling ReadRopeScaling(const json& fields) {
  ReferenceRopeScaling scaling;
  if (fields.is_null()) return scaling;
  const auto type =
      FieldOr<std::string>(fields, "rope_type", FieldOr<std::string>(fields, "type", "default"));
  if (type == "default") return scaling;
  if (type == "longrope") {
    scaling.type = ReferenceRopeScaling::Type::kLongrope;
    scaling.short_factor = fields.at("short_factor").get<std::vector<double>>();
    scaling.long_factor = fields.at("long_factor").get<std::vector<double>>();
    return scaling;
  }
  if (type == "proportional") {
    scaling.type = ReferenceRopeScaling::Type::kProportional;
    scaling.factor = FieldOr(fields, "factor", 1.0);
    scaling.partial_rotary_factor = FieldOr(fields, "partial_rotary_factor", 1.0);
    return scaling;
  }
  scaling.factor = fields.at("factor").get<double>();
  if (type == "linear") {
    scaling.type = ReferenceRopeScaling::Type::kLinear;
  } else if (type == "llama3") {
    scaling.type = ReferenceRopeScaling::Type::kLlama3;
    scaling.low_freq_factor = fields.at("low_freq_factor").get<double>();
    scaling.high_freq_factor = fields.at("high_freq_factor").get<double>();
    scaling.original_max_position_embeddings =
        fields.at("original_max_position_embeddings").get<size_t>();
  } else if (type == "dynamic") {
    scaling.type = ReferenceRopeScaling::Type::kDynamic;
  } else if (type == "yarn") {
    scaling.type = ReferenceRopeScaling::Type::kYarn;
    scaling.original_max_position_embeddings =
        fields.at("original_max_position_embeddings").get<size_t>();
    // The magnitude for a weight of the logarithm; two weights give a quotient of magnitudes.
    const auto magnitude = [&](double weight) {
      return scaling.factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(scaling.factor) + 1.0;
    };
    const double above = FieldOr(fields, "mscale", 0.0);
    const double below = FieldOr(fields, "mscale_all_dim", 0.0);
    const bool has_both = above != 0.0 && below != 0.0;
    scaling.attention_factor = FieldOr(
        fields, "attention_factor", has_both ? magnitude(above) / magnitude(below) : magnitude(1));
    scaling.beta_fast = FieldOr(fields, "beta_fast", 32.0);
    scaling.beta_slow = FieldOr(fields, "beta_slow", 1.0);
    scaling.truncate = FieldOr(fields, "truncate", true);
  } else {
    throw std::runtime_error("unknown rope_scaling type " + type);
  }
  return scaling;
}

}  // namespace cria::reference
