#include "converter/gguf/gguf_metadata.h"

#include <cmath>
#include <limits>
#include <utility>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {

bool GgufMetadata::Add(std::string key, GgufValue value) {
  return values_.emplace(std::move(key), std::move(value)).second;
}

std::unexpected<Error> GgufMetadata::Bad(std::string_view key, std::string_view what,
                                         ErrorCode code) const {
  return Fail(code, Format("{}: {} {}", where_, Quotable(key), what));
}

std::unexpected<Error> GgufMetadata::WrongKind(std::string_view key,
                                               std::string_view wanted) const {
  if (!Has(key)) return Bad(key, "is missing", ErrorCode::kNotFound);
  return Bad(key, Format("is not {}", wanted));
}

Result<uint32_t> GgufMetadata::Integer(std::string_view key,
                                       std::optional<uint32_t> otherwise) const {
  if (otherwise && !Has(key)) return *otherwise;
  const auto* value = Find<int64_t>(key);
  if (value == nullptr) return WrongKind(key, "one whole number");
  if (*value >= 0 && *value <= std::numeric_limits<uint32_t>::max()) {
    return static_cast<uint32_t>(*value);
  }
  return Bad(key, Format("is {}, outside 0 to 2^32 - 1", *value));
}

Result<float> GgufMetadata::Number(std::string_view key, std::optional<float> otherwise) const {
  if (otherwise && !Has(key)) return *otherwise;
  if (const auto* whole = Find<int64_t>(key)) return static_cast<float>(*whole);
  const auto* value = Find<double>(key);
  if (value == nullptr) return WrongKind(key, "a number");
  if (std::isfinite(static_cast<float>(*value))) return static_cast<float>(*value);
  return Bad(key, "is too large for a float");
}

Result<bool> GgufMetadata::Bool(std::string_view key, bool otherwise) const {
  if (!Has(key)) return otherwise;
  if (const auto* value = Find<bool>(key)) return *value;
  return WrongKind(key, "true or false");
}

Result<std::string> GgufMetadata::String(std::string_view key,
                                         std::optional<std::string> otherwise) const {
  if (otherwise && !Has(key)) return *otherwise;
  if (const auto* value = Find<std::string>(key)) return *value;
  return WrongKind(key, "a string");
}

}  // namespace cria
