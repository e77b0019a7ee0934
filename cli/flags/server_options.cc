#include "cli/flags/server_options.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/flags/byte_count.h"
#include "core/format.h"

namespace cria::cli {
namespace {

// Reads "FOLDER" or "FOLDER:SIZE". What follows the last colon is a size, unless it has a slash: a
// wrong size would otherwise become a part of the folder's name.
Status ReadPrefixCache(std::string_view text, PrefixCacheOptions& options) {
  const size_t colon = text.rfind(':');
  const bool has_size = colon != text.npos && !text.substr(colon).contains('/');
  const std::optional<uint64_t> bytes =
      has_size ? ParseByteCount(text.substr(colon + 1)) : server::kDefaultPromptBytes;
  options.folder = text.substr(0, has_size ? colon : text.npos);
  options.max_bytes = bytes.value_or(0);
  if (!options.folder.empty() && options.max_bytes != 0) return {};
  return Fail(
      ErrorCode::kUsage,
      Format("\"{}\" is neither a folder nor a folder and a size, such as prompts:500M", text));
}

}  // namespace

void AddPrefixCache(CommandLine& command, PrefixCacheOptions& options) {
  command
      .Add(
          "--prefix-cache", "FOLDER[:SIZE]",
          [&options](std::string_view text) { return ReadPrefixCache(text, options); },
          "A folder for prompts that the KV cache gives up, and for those that it has when the "
          "server ends: they are read again and not computed, also after a restart. SIZE bounds "
          "its files, such as 500M (default: 1G)")
      .Group(kServerGroup);
}

void AddServerBounds(CommandLine& command, server::HttpBounds& bounds, size_t& max_waiting) {
  command
      .AddNumber("--max-connections", bounds.max_connections,
                 "Connections that the server has at the same time", size_t{1}, size_t{10'000})
      .Group(kServerGroup);
  command
      .AddNumber("--max-queue", max_waiting, "Requests that wait for a sequence; more are refused",
                 size_t{0}, size_t{100'000})
      .Group(kServerGroup);
}

}  // namespace cria::cli
