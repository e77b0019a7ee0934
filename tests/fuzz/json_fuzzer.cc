// Any bytes as the variables of a chat template: reading must end in values or an error, and must
// accept what another reader of JSON accepts. corpus/json/ has objects to begin with.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "jinja/json_reader.h"
#include "jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cria;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  jinja::Context context(jinja::Limits{}, nullptr);
  const auto value = jinja::ReadJson(context, text);
  if (value) {
    // Strings are not trusted, and every value can be written.
    const jinja::Variable variable = {"x", *value};
    const auto segments = jinja::Template("{{ x | tojson }}").Render(context, {&variable, 1});
    if (!segments && segments.error().code() != ErrorCode::kOutOfRange) std::abort();
    return 0;
  }
  // The other reader ends at a zero byte and skips a byte order mark.
  if (text.contains('\0') || text.starts_with("\xEF\xBB\xBF")) return 0;
  // A nesting of more than a hundred levels is refused.
  const bool is_limit =
      value.error().code() == ErrorCode::kOutOfRange || value.error().message().contains("nested");
  if (!is_limit && nlohmann::json::accept(text)) std::abort();
  return 0;
}
