#include "cli/input/left_out.h"

#include <cstdint>
#include <vector>

#include "cli/terminal/printable.h"
#include "core/format.h"

namespace cria::cli {
namespace {

// A character as it can be shown, or its byte.
std::string NameOf(const std::string& character) {
  std::string shown = Printable(character);
  if (character.size() > 1 && shown == character) return shown;
  std::string bytes;
  for (const char byte : character) {
    bytes += Format("{}0x{:02X}", bytes.empty() ? "" : " ", static_cast<uint8_t>(byte));
  }
  return bytes;
}

}  // namespace

std::string LeftOutNotice(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<std::string> left_out = tokenizer.LeftOut(text);
  if (left_out.empty()) return "";
  const bool are_all_named = left_out.size() < Tokenizer::kMaxLeftOut;
  std::string names;
  for (size_t i = 0; i < left_out.size(); ++i) {
    const bool is_last = i + 1 == left_out.size() && are_all_named;
    names += i == 0 ? "" : is_last ? " and " : ", ";
    names += NameOf(left_out[i]);
  }
  if (!are_all_named) names += " and others";
  return left_out.size() == 1 ? Format("the model has no token for {}, which is left out", names)
                              : Format("the model has no tokens for {}, which are left out", names);
}

}  // namespace cria::cli
