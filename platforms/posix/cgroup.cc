#include "posix/cgroup.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "posix/small_file.h"

namespace cria::platform {
namespace {

// Version 1 writes a missing limit as the largest number of pages that the kernel can count, in
// bytes: nearly 2^43 with 32 bits and 2^63 with 64. A limit this large has no effect.
constexpr uint64_t kNoLimit = uint64_t{1} << 42;

// A mounted hierarchy of control groups.
struct Mount {
  bool unified = false;  // Version 2.
  std::string root;      // The group that the mount point shows: "/" unless it is a bind mount.
  std::string point;
};

// The groups of a process in the hierarchies that can limit one resource; empty if there is none.
struct Membership {
  std::string_view controller;  // Version 1.
  std::string_view unified;     // Version 2.
};

// Removes and returns the text before the first `separator`, or all of it.
std::string_view TakeUntil(std::string_view& text, std::string_view separator) {
  const size_t end = text.find(separator);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + separator.size());
  return taken;
}

bool ListHas(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (TakeUntil(list, ",") == word) return true;
  }
  return false;
}

// mountinfo escapes space, tab, newline, backslash and # as a backslash and three octal digits.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '\\' && text.size() - i > 3 &&
        std::from_chars(digits, digits + 3, value, 8).ptr == digits + 3) {
      plain += static_cast<char>(value);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// proc(5): "id parent major:minor root point options [tags...] - type source super-options".
std::vector<Mount> ParseMounts(std::string_view mountinfo, std::string_view controller) {
  std::vector<Mount> mounts;
  while (!mountinfo.empty()) {
    std::string_view type_onwards = TakeUntil(mountinfo, "\n");
    std::string_view line = TakeUntil(type_onwards, " - ");
    const std::string_view type = TakeUntil(type_onwards, " ");
    TakeUntil(type_onwards, " ");
    const bool unified = type == "cgroup2";
    if (!unified && !(type == "cgroup" && ListHas(type_onwards, controller))) continue;
    for (int skipped = 0; skipped < 3; ++skipped) TakeUntil(line, " ");
    std::string root = Unescape(TakeUntil(line, " "));
    std::string point = Unescape(TakeUntil(line, " "));
    if (!root.starts_with('/') || !point.starts_with('/')) continue;
    mounts.push_back({.unified = unified, .root = std::move(root), .point = std::move(point)});
  }
  return mounts;
}

// cgroups(7): "id:controllers:path"; version 2 has the id 0 and no controllers.
Membership ParseMembership(std::string_view cgroup, std::string_view controller) {
  Membership membership;
  while (!cgroup.empty()) {
    std::string_view path = TakeUntil(cgroup, "\n");
    const std::string_view id = TakeUntil(path, ":");
    const std::string_view controllers = TakeUntil(path, ":");
    if (ListHas(controllers, controller)) membership.controller = path;
    if (id == "0" && controllers.empty()) membership.unified = path;
  }
  return membership;
}

// The path of `group` below the mount's root ("" or "/a/b"); absent if the group is not below it.
std::optional<std::string> PathBelow(const std::string& mount_root, std::string_view group) {
  std::string_view below = group;
  if (mount_root != "/") {
    if (!below.starts_with(mount_root)) return std::nullopt;
    below.remove_prefix(mount_root.size());
  }
  if (below == "/") below = {};
  if (!below.empty() && below.front() != '/') return std::nullopt;
  // A group outside this process's cgroup namespace is written with "..", which would lead out of
  // the mount.
  if ((std::string(below) + "/").find("/../") != std::string::npos) return std::nullopt;
  return std::string(below);
}

// The whole of `text` as a number.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string ReadFirstLine(const std::string& path) {
  const std::string contents = ReadSmallFile(path);
  std::string_view line = contents;
  return std::string(TakeUntil(line, "\n"));
}

// Calls `visit(folder, unified)` for the process's group and each one above it that is visible, in
// every mounted hierarchy of this controller.
template <typename Visit>
void ForEachGroup(const std::string& root, std::string_view controller, const Visit& visit) {
  const std::string cgroup = ReadSmallFile(root + "/proc/self/cgroup");
  const Membership membership = ParseMembership(cgroup, controller);
  for (const Mount& mount : ParseMounts(ReadSmallFile(root + "/proc/self/mountinfo"), controller)) {
    const std::string_view group = mount.unified ? membership.unified : membership.controller;
    if (group.empty()) continue;
    std::optional<std::string> below = PathBelow(mount.root, group);
    if (!below) continue;
    while (true) {
      visit(root + mount.point + *below, mount.unified);
      if (below->empty()) break;
      below->resize(below->rfind('/'));
    }
  }
}

template <typename T>
void KeepMin(std::optional<T> candidate, std::optional<T>& min) {
  if (candidate) min = std::min(*candidate, min.value_or(*candidate));
}

// Both are in microseconds. Version 2's "max" is not a number and means no quota.
std::optional<double> QuotaOf(std::string_view quota, std::string_view period) {
  const std::optional<uint64_t> quota_us = ParseNumber(quota);
  const std::optional<uint64_t> period_us = ParseNumber(period);
  if (!quota_us || !period_us || *period_us == 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

}  // namespace

std::optional<uint64_t> CgroupMemoryLimit(const std::string& root) {
  std::optional<uint64_t> min;
  ForEachGroup(root, "memory", [&](const std::string& folder, bool unified) {
    const char* const file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    // Version 2's "max" is not a number and means no limit.
    const std::optional<uint64_t> bytes = ParseNumber(ReadFirstLine(folder + file));
    if (bytes && *bytes < kNoLimit) KeepMin(bytes, min);
  });
  return min;
}

std::optional<double> CgroupProcessorQuota(const std::string& root) {
  std::optional<double> min;
  ForEachGroup(root, "cpu", [&](const std::string& folder, bool unified) {
    if (unified) {
      const std::string line = ReadFirstLine(folder + "/cpu.max");
      std::string_view period = line;
      const std::string_view quota = TakeUntil(period, " ");
      KeepMin(QuotaOf(quota, period), min);
    } else {
      // Version 1 writes -1 if there is no quota.
      KeepMin(QuotaOf(ReadFirstLine(folder + "/cpu.cfs_quota_us"),
                      ReadFirstLine(folder + "/cpu.cfs_period_us")),
              min);
    }
  });
  return min;
}

}  // namespace cria::platform
