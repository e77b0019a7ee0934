#include "converter/hub/checkpoint_name.h"

#include <algorithm>

#include "core/format.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

constexpr std::string_view kPrefix = "hf:";
constexpr size_t kMaxNameBytes = 96;  // The hub's limit.
constexpr size_t kMaxRevisionBytes = 250;
constexpr size_t kMaxPathBytes = 1000;
constexpr size_t kMaxPathPartBytes = 240;  // Leaves room for the ending of an unfinished file.

bool IsControl(char character) {
  return static_cast<unsigned char>(character) < 0x20 || character == 0x7f;
}

// The characters that the hub allows in the name of an organization or a model.
bool IsRepositoryPart(std::string_view part) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !part.empty() && part.size() <= kMaxNameBytes && part.front() != '.' &&
         part.front() != '-' && std::ranges::all_of(part, is_allowed);
}

bool IsRevision(std::string_view revision) {
  return !revision.empty() && revision.size() <= kMaxRevisionBytes &&
         std::ranges::none_of(revision, IsControl) && revision != "." && revision != "..";
}

}  // namespace

bool IsCheckpointName(std::string_view text) { return text.starts_with(kPrefix); }

Result<CheckpointName> ParseCheckpointName(std::string_view text) {
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kUsage,
                Format("\"{}\" {}; a checkpoint on the hub is written hf:ORG/NAME, "
                       "hf:ORG/NAME@REVISION or hf:ORG/NAME:FILE.gguf",
                       Quotable(text), what));
  };
  if (!IsCheckpointName(text)) return bad("does not begin with hf:");
  std::string_view rest = text.substr(kPrefix.size());
  CheckpointName name;
  if (const size_t at = rest.find('@'); at != std::string_view::npos) {
    name.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
    if (!IsRevision(name.revision)) return bad("has no valid revision after the @");
  }
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return bad("has no slash between organization and name");
  const size_t file = rest.find_first_of("/:", slash + 1);
  name.organization = rest.substr(0, slash);
  name.name = rest.substr(slash + 1, file == std::string_view::npos ? file : file - slash - 1);
  if (!IsRepositoryPart(name.organization) || !IsRepositoryPart(name.name)) {
    return bad("is not the name of a model");
  }
  if (file != std::string_view::npos) {
    name.file = rest.substr(file + 1);
    if (!IsSafePath(name.file) || !name.file.ends_with(".gguf")) {
      return bad("names a file that is not a GGUF file");
    }
  }
  return name;
}

bool IsSafePath(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) return false;
  if (std::ranges::any_of(path, [](char c) { return IsControl(c) || c == '\\' || c == ':'; })) {
    return false;
  }
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPathPartBytes) {
      return false;
    }
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace cria::hub
