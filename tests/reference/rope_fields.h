#pragma once

#include <nlohmann/json.hpp>

#include "reference/reference_model.h"

namespace cria::reference {

// An absent field and one that is null mean the same in config.json.
template <typename T>
T FieldOr(const nlohmann::json& object, const char* name, T fallback) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? fallback : found->template get<T>();
}

// The object rope_scaling, or one of rope_parameters; null is none.
ReferenceRopeScaling ReadRopeScaling(const nlohmann::json& fields);

}  // namespace cria::reference
