#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/calls/call_form.h"
#include "server/requests/tools.h"

namespace cria::server {

// Longer arguments of which nothing can be passed on before their end are invalid.
inline constexpr size_t kMaxArgumentBytes = size_t{1} << 18;

// Reads the arguments of one call while they come, and makes JSON of them.
class ArgumentReader {
 public:
  enum class State : uint8_t { kMore, kComplete, kInvalid };

  virtual ~ArgumentReader() = default;

  // Takes the next byte of the arguments. What it makes certain of their JSON is appended to
  // `json`, so that all of it is one object when they are complete.
  virtual State Take(char byte, std::string& json) = 0;
};

// Null: the arguments of a call that has no CallForm, which are JSON.
std::unique_ptr<ArgumentReader> MakeArgumentReader(const CallForm* form, const Tool& tool);

// ---- For the styles ----

std::unique_ptr<ArgumentReader> MakeTaggedReader(const CallForm& form, const Tool& tool);
std::unique_ptr<ArgumentReader> MakeLiteralReader(ArgumentStyle style);

}  // namespace cria::server
