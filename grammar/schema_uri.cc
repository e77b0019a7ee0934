#include "grammar/schema_uri.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>

namespace cria::grammar {
namespace {

// The length of the scheme with its colon; 0 if there is none.
size_t SchemeSize(std::string_view uri) {
  const size_t end = uri.find_first_of(":/?#");
  return end == uri.npos || end == 0 || uri[end] != ':' ? 0 : end + 1;
}

// The length of "//" and the authority at the beginning of `rest`; 0 if there is none.
size_t AuthoritySize(std::string_view rest) {
  if (!rest.starts_with("//")) return 0;
  const size_t end = rest.find_first_of("/?#", 2);
  return end == rest.npos ? rest.size() : end;
}

std::string WithoutDotSegments(std::string_view path) {
  std::string result;
  const bool is_absolute = path.starts_with('/');
  while (!path.empty()) {
    // A segment with the slash before it.
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);
    const std::string_view name = segment.starts_with('/') ? segment.substr(1) : segment;
    path.remove_prefix(end);
    if (name == "..") {
      const size_t slash = result.rfind('/');
      result.resize(slash == result.npos ? 0 : slash);
    } else if (name != ".") {
      result += segment;
      continue;
    }
    if (path.empty()) result += '/';
  }
  if (!is_absolute && result.starts_with('/')) result.erase(0, 1);
  return result;
}

}  // namespace

std::string ResolveUri(std::string_view base, std::string_view reference) {
  reference = reference.substr(0, reference.find('#'));
  base = base.substr(0, base.find('#'));
  const size_t scheme = SchemeSize(base);
  const size_t root = scheme + AuthoritySize(base.substr(scheme));
  const size_t base_query = std::min(base.find('?', root), base.size());
  const size_t query = std::min(reference.find('?'), reference.size());
  const std::string_view path = reference.substr(0, query);
  if (SchemeSize(reference) != 0) return std::string(reference);
  // How much of the base remains before the reference.
  size_t kept = root;
  if (reference.empty()) {
    kept = base.size();
  } else if (reference.starts_with("//")) {
    kept = scheme;
  } else if (path.empty()) {
    kept = base_query;
  } else if (!path.starts_with('/')) {
    const size_t slash = base.substr(0, base_query).rfind('/');
    kept = slash == base.npos || slash < root ? root : slash + 1;
  }
  std::string uri(base.substr(0, kept));
  if (kept < root || path.empty()) return uri.append(reference);
  // A host's path is absolute.
  if (kept == root && root > scheme && !path.starts_with('/')) uri += '/';
  uri.append(path);
  uri = uri.substr(0, root).append(WithoutDotSegments(std::string_view(uri).substr(root)));
  return uri.append(reference.substr(query));
}

std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace cria::grammar
