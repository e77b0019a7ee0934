#include "cli/commands/pack_entries.h"

#include <sys/stat.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/commands/unused_file.h"
#include "cli/flags/option.h"
#include "cli/report.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "core/format_bytes.h"
#include "model/file_layout.h"

namespace cria::cli {
namespace {

using Entry = xnn::PackCache::Entry;

// When the file was packed, in seconds since 1970; 0 if the file does not exist any more.
std::time_t PackingTime(const Entry& entry) {
  struct stat status = {};
  return stat(entry.path.c_str(), &status) == 0 ? status.st_mtime : 0;
}

std::string TimeText(const std::tm& time, const char* format) {
  std::array<char, 64> text;
  return {text.data(), std::strftime(text.data(), text.size(), format, &time)};
}

// The scheme of PackedIdentity::layer_schemes, as --weights of cria-convert names it.
const char* WeightsName(uint8_t layer_schemes) {
  switch (layer_schemes) {
    case 0:
      return "unknown";
    case 1u << static_cast<uint32_t>(Scheme::kF32):
      return "f32";
    case 1u << static_cast<uint32_t>(Scheme::kQc8w):
      return "int8";
    case 1u << static_cast<uint32_t>(Scheme::kQb4w):
    case 1u << 4:
      return "int4";
    case 1u << 3:
      return "kept";
    default:
      return "mixed";
  }
}

nlohmann::ordered_json EntryJson(const Entry& entry) {
  const std::time_t time = PackingTime(entry);
  std::tm parts = {};
  gmtime_r(&time, &parts);
  // An initializer list would be twice as many bytes of code.
  nlohmann::ordered_json json;
  const auto set = [&json](const char* name, std::string text) { json[name] = std::move(text); };
  set("path", entry.path);
  json["bytes"] = entry.bytes;
  set("packed_at", TimeText(parts, "%FT%TZ"));
  set("weights", WeightsName(entry.layer_schemes));
  set("model", entry.model_name);
  set("digest", entry.digest);
  json["usable"] = entry.defect.empty();
  if (!entry.defect.empty()) set("defect", entry.defect);
  return json;
}

void PrintEntry(const Entry& entry) {
  const std::time_t time = PackingTime(entry);
  std::tm parts = {};
  localtime_r(&time, &parts);
  std::string remark = entry.model_name;
  if (!entry.defect.empty()) {
    if (!remark.empty()) remark += ' ';
    remark += "(not usable here: " + entry.defect + ")";
  }
  std::printf("%10s  %s  %-7s  %s  %s\n", FormatBytes(entry.bytes).c_str(),
              TimeText(parts, "%F %R").c_str(), WeightsName(entry.layer_schemes),
              Printable(entry.path).c_str(), Printable(remark).c_str());
}

std::vector<Entry> Select(std::vector<Entry> entries, std::string_view text) {
  constexpr size_t kMinDigits = 8;
  std::erase_if(entries, [&](const Entry& entry) {
    const bool is_name = entry.path == text || entry.path.ends_with("/" + std::string(text));
    return !is_name && (text.size() < kMinDigits || !entry.digest.starts_with(text));
  });
  return entries;
}

// Removes it and says so. Returns the bytes freed.
Result<uint64_t> RemoveEntry(const xnn::PackCache& cache, const Entry& entry) {
  CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, cache.Remove(entry));
  std::printf("%s freed: %s\n", FormatBytes(bytes).c_str(), Printable(entry.path).c_str());
  return bytes;
}

void PrintFreed(const xnn::PackCache& cache, uint64_t bytes) {
  std::printf("%s freed in %s\n", FormatBytes(bytes).c_str(), Printable(cache.folder()).c_str());
}

}  // namespace

Status ListEntries(const xnn::PackCache& cache, bool as_json) {
  CRIA_ASSIGN_OR_RETURN(const auto entries, cache.List());
  uint64_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.bytes;
  if (as_json) {
    nlohmann::ordered_json json;
    json["folder"] = cache.folder();
    json["bytes"] = bytes;
    auto& files = json["files"] = nlohmann::ordered_json::array();
    for (const Entry& entry : entries) files.push_back(EntryJson(entry));
    PrintJson(json);
    return {};
  }
  if (entries.empty()) {
    std::printf("%s holds no packed weights\n", Printable(cache.folder()).c_str());
    return {};
  }
  for (const Entry& entry : entries) PrintEntry(entry);
  std::printf("%10s  in %s of %s\n", FormatBytes(bytes).c_str(),
              CountText(entries.size(), "file").c_str(), Printable(cache.folder()).c_str());
  return {};
}

Status ClearEntries(const xnn::PackCache& cache) {
  CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, cache.Clear());
  PrintFreed(cache, bytes);
  return {};
}

Status RemoveEntries(const xnn::PackCache& cache, std::string_view name, const std::string& asked) {
  CRIA_ASSIGN_OR_RETURN(std::vector<Entry> entries, cache.List());
  entries = Select(std::move(entries), name);
  if (entries.empty()) {
    return Fail(ErrorCode::kNotFound,
                Format("{} holds no packed weights of {}", cache.folder(), asked));
  }
  // Several files may belong to one model, but digits may begin the digests of several models.
  for (const Entry& entry : entries) {
    if (entry.digest != entries.front().digest) {
      return Fail(ErrorCode::kUsage,
                  Format("\"{}\" begins the digests of several models; give more digits", asked));
    }
  }
  for (const Entry& entry : entries) CRIA_RETURN_IF_ERROR(RemoveEntry(cache, entry));
  return {};
}

Status ReadEntryAge(std::string_view text, std::optional<EntryAge>& age) {
  constexpr uint32_t kMaxCount = 100'000;  // So many weeks in seconds fit a number of 64 bits.
  constexpr std::pair<std::string_view, int> kUnits[] = {{"h", 1}, {"d", 24}, {"w", 7 * 24}};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  uint32_t count = 0;
  const auto [stop, error] = std::from_chars(begin, end, count);
  for (const auto& [unit, hours] : kUnits) {
    if (error != std::errc() || count > kMaxCount || std::string_view(stop, end) != unit) continue;
    age = {.text = std::string(text), .hours = std::chrono::hours(count) * hours};
    return {};
  }
  return WrongValue(text, "an age such as 12h, 30d or 8w: hours, days or weeks");
}

Status RemoveOldEntries(const xnn::PackCache& cache, const EntryAge& age) {
  CRIA_ASSIGN_OR_RETURN(const auto entries, cache.List());
  const std::time_t oldest_kept = std::time(nullptr) - std::chrono::seconds(age.hours).count();
  size_t num_old = 0;
  uint64_t freed_bytes = 0;
  for (const Entry& entry : entries) {
    const std::time_t time = PackingTime(entry);
    if (time == 0 || time >= oldest_kept) continue;
    ++num_old;
    const UnusedFile file(entry.path, kPackedMagic);
    if (!file.defect().empty()) {
      std::printf("kept: %s: %s\n", Printable(entry.path).c_str(),
                  std::string(file.defect()).c_str());
      continue;
    }
    CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, RemoveEntry(cache, entry));
    freed_bytes += bytes;
  }
  if (num_old == 0) {
    std::printf("%s holds no packed weights older than %s\n", Printable(cache.folder()).c_str(),
                age.text.c_str());
    return {};
  }
  PrintFreed(cache, freed_bytes);
  return {};
}

}  // namespace cria::cli
