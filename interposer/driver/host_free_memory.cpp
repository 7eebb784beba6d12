#include "interposer/driver/host_free_memory.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/file.h"
#include "base/lines.h"

namespace spillway::driver {
namespace {

constexpr std::size_t kMostPath = 1024;

std::string_view BehindSpaces(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

// The number after `key` at a line's begin, times `unit_bytes`; `otherwise` for "max" or no file.
std::size_t NumberIn(const char* path, const char* key, std::size_t unit_bytes,
                     std::size_t otherwise) {
  const base::Result<std::string> text = base::ReadFile(path);
  if (!text) return otherwise;
  std::string_view rest = *text;
  while (const auto line = base::TakeLine(rest)) {
    if (!line->starts_with(key)) continue;
    const std::string_view digits = BehindSpaces(line->substr(strlen(key)));
    std::size_t number = 0;
    if (std::from_chars(digits.begin(), digits.end(), number).ec != std::errc()) continue;
    return std::min(number, SIZE_MAX / unit_bytes) * unit_bytes;
  }
  return otherwise;
}

struct Hierarchy {
  const char* place;
  const char *limit, *used, *reclaimable;
};
constexpr Hierarchy kSecond = {"", "memory.max", "memory.current", "inactive_file "};
constexpr Hierarchy kSecondBesideFirst = {"/unified", "memory.max", "memory.current",
                                          "inactive_file "};
constexpr Hierarchy kFirst = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                              "total_inactive_file "};

std::size_t NumberOf(const char* folder, const char* file, const char* key, std::size_t otherwise) {
  char path[kMostPath];
  const int size = snprintf(path, sizeof path, "%s/%s", folder, file);
  return size > 0 && static_cast<std::size_t>(size) < sizeof path
             ? NumberIn(path, key, 1, otherwise)
             : otherwise;
}

std::size_t GroupBytes(const Hierarchy& hierarchy, const char* folder) {
  const std::size_t limit = NumberOf(folder, hierarchy.limit, "", SIZE_MAX);
  const std::size_t used =
      limit == SIZE_MAX ? SIZE_MAX : NumberOf(folder, hierarchy.used, "", SIZE_MAX);
  if (used == SIZE_MAX) return SIZE_MAX;
  const std::size_t cached = NumberOf(folder, "memory.stat", hierarchy.reclaimable, 0);
  return limit - std::min(limit, used - std::min(used, cached));
}

// In a container the group's own folder may be missing: its files are at the root.
std::size_t BytesUpFrom(const Hierarchy& hierarchy, const char* root, const char* group) {
  char folder[kMostPath];
  const int size = snprintf(folder, sizeof folder, "%s%s%s", root, hierarchy.place, group);
  if (size <= 0 || static_cast<std::size_t>(size) >= sizeof folder) return SIZE_MAX;
  const std::size_t root_size = strlen(root) + strlen(hierarchy.place);
  std::size_t least = SIZE_MAX;
  for (;;) {
    least = std::min(least, GroupBytes(hierarchy, folder));
    char* const last = strrchr(folder, '/');
    if (!last || static_cast<std::size_t>(last - folder) < root_size) return least;
    *last = 0;
  }
}

}  // namespace

std::size_t GroupsHostBytes(const char* groups, const char* root) {
  const base::Result<std::string> text = base::ReadFile(groups);
  if (!text) return SIZE_MAX;
  std::size_t least = SIZE_MAX;
  std::string_view rest = *text;
  while (const auto whole = base::TakeLine(rest)) {
    const std::string held(*whole);
    const char* const line = held.c_str();
    // Either "4:memory:/path" or, for version 2, "0::/path".
    const char* const names = strchr(line, ':');
    const char* const path = names ? strchr(names + 1, ':') : nullptr;
    if (!path || path[1] != '/') continue;
    const std::size_t names_size = static_cast<std::size_t>(path - names - 1);
    const bool is_root = path[2] == 0;
    const char* const group = is_root ? "" : path + 1;
    if (names_size == 0) {
      least = std::min(least, BytesUpFrom(kSecond, root, group));
      least = std::min(least, BytesUpFrom(kSecondBesideFirst, root, group));
    } else if (names_size == 6 && strncmp(names + 1, "memory", 6) == 0) {
      least = std::min(least, BytesUpFrom(kFirst, root, group));
    }
  }
  return least;
}

std::size_t FreeHostBytes() {
  const std::size_t available = NumberIn("/proc/meminfo", "MemAvailable:", 1024, SIZE_MAX);
  return std::min(available, GroupsHostBytes("/proc/self/cgroup", "/sys/fs/cgroup"));
}

}  // namespace spillway::driver
