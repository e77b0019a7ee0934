#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/platform.h"
#include "posix/cgroup.h"
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

// The groups of a process in the hierarchies that can limit memory; empty if there is none.
struct Membership {
  std::string_view memory_controller;  // Version 1.
  std::string_view unified;            // Version 2.
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
std::vector<Mount> ParseMounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  while (!mountinfo.empty()) {
    std::string_view type_onwards = TakeUntil(mountinfo, "\n");
    std::string_view line = TakeUntil(type_onwards, " - ");
    const std::string_view type = TakeUntil(type_onwards, " ");
    TakeUntil(type_onwards, " ");
    const bool unified = type == "cgroup2";
    if (!unified && !(type == "cgroup" && ListHas(type_onwards, "memory"))) continue;
    for (int skipped = 0; skipped < 3; ++skipped) TakeUntil(line, " ");
    std::string root = Unescape(TakeUntil(line, " "));
    std::string point = Unescape(TakeUntil(line, " "));
    if (!root.starts_with('/') || !point.starts_with('/')) continue;
    mounts.push_back({.unified = unified, .root = std::move(root), .point = std::move(point)});
  }
  return mounts;
}

// cgroups(7): "id:controllers:path"; version 2 has the id 0 and no controllers.
Membership ParseMembership(std::string_view cgroup) {
  Membership membership;
  while (!cgroup.empty()) {
    std::string_view path = TakeUntil(cgroup, "\n");
    const std::string_view id = TakeUntil(path, ":");
    const std::string_view controllers = TakeUntil(path, ":");
    if (ListHas(controllers, "memory")) membership.memory_controller = path;
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

std::optional<uint64_t> ReadLimit(const std::string& path) {
  const std::string contents = ReadSmallFile(path);
  std::string_view line = contents;
  line = TakeUntil(line, "\n");
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), bytes);
  // Version 2's "max" is not a number and means no limit.
  if (error != std::errc() || end != line.data() + line.size() || bytes >= kNoLimit) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace

std::optional<uint64_t> CgroupMemoryLimit(const std::string& root) {
  const std::string cgroup = ReadSmallFile(root + "/proc/self/cgroup");
  const Membership membership = ParseMembership(cgroup);
  std::optional<uint64_t> least;
  for (const Mount& mount : ParseMounts(ReadSmallFile(root + "/proc/self/mountinfo"))) {
    const std::string_view group =
        mount.unified ? membership.unified : membership.memory_controller;
    if (group.empty()) continue;
    std::optional<std::string> below = PathBelow(mount.root, group);
    if (!below) continue;
    const char* const file = mount.unified ? "/memory.max" : "/memory.limit_in_bytes";
    while (true) {
      if (const auto limit = ReadLimit(root + mount.point + *below + file)) {
        least = std::min(*limit, least.value_or(*limit));
      }
      if (below->empty()) break;
      below->resize(below->rfind('/'));
    }
  }
  return least;
}

MemoryLimits ReadMemoryLimits() {
  MemoryLimits limits;
  limits.cgroup_bytes = CgroupMemoryLimit("");
  rlimit address_space = {};
  if (getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    limits.address_space_bytes = address_space.rlim_cur;
  }
  return limits;
}

}  // namespace cria::platform
