#include "weights/scheme.h"

#include "weights/block_format.h"

namespace cria {

std::string_view SchemeName(Scheme scheme) {
  switch (scheme) {
    case Scheme::kF32:
      return "f32";
    case Scheme::kQc8w:
      return "qc8w";
    case Scheme::kQb4w:
      return "qb4w";
    default:
      break;
  }
  const BlockFormat* const format = FindBlockFormat(scheme);
  return format == nullptr ? "unknown" : format->name;
}

}  // namespace cria
