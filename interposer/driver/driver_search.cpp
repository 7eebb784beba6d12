#include "interposer/driver/driver_search.h"

#include <limits.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>

namespace spillway::driver {
namespace {

constexpr char kDriverName[] = "libcuda.so.1";

constexpr const char* kDriverFolders[] = {
    "/usr/lib/x86_64-linux-gnu",  // Debian, Ubuntu
    "/usr/lib64",                 // Red Hat, SUSE
    "/usr/lib",                   // Arch
    "/usr/local/nvidia/lib64",    // device plug-ins and images that mount the driver
    "/usr/lib/wsl/lib",           // Windows Subsystem for Linux
    "/run/opengl-driver/lib",     // NixOS
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
};

// glibc's cache file (sysdeps/generic/dl-cache.h). Offsets count from the start of the header.
struct CacheHeader {
  char magic[20];
  uint32_t entry_count;
  uint32_t string_bytes;
  uint8_t flags[4];
  uint32_t extension_offset;
  uint32_t unused[3];
};
static_assert(sizeof(CacheHeader) == 48);

struct CacheEntry {
  int32_t flags;
  uint32_t name_offset;
  uint32_t path_offset;
  uint32_t os_version;
  uint64_t hardware_capabilities;
};
static_assert(sizeof(CacheEntry) == 24);

std::string_view StringAt(std::string_view file, uint32_t offset) {
  if (offset >= file.size()) return {};
  const size_t end = file.find('\0', offset);
  if (end == std::string_view::npos) return {};
  return file.substr(offset, end - offset);
}

void AppendFolders(const char* colon_separated, std::vector<std::string>* paths) {
  std::string_view rest = colon_separated == nullptr ? "" : colon_separated;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    if (!folder.empty()) paths->push_back(std::string(folder) + "/" + kDriverName);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
}

}  // namespace

std::vector<std::string> CachedPaths(std::string_view file, std::string_view library) {
  CacheHeader header;
  if (file.size() < sizeof(header)) return {};
  memcpy(&header, file.data(), sizeof(header));
  if (memcmp(header.magic, "glibc-ld.so.cache1.1", sizeof(header.magic)) != 0) return {};
  if (header.entry_count > (file.size() - sizeof(header)) / sizeof(CacheEntry)) return {};

  std::vector<std::string> paths;
  for (uint32_t i = 0; i < header.entry_count; ++i) {
    CacheEntry entry;
    memcpy(&entry, file.data() + sizeof(header) + i * sizeof(entry), sizeof(entry));
    if (StringAt(file, entry.name_offset) != library) continue;
    const std::string_view path = StringAt(file, entry.path_offset);
    if (!path.empty()) paths.emplace_back(path);
  }
  return paths;
}

std::vector<std::string> DriverCandidates(const char* library_path, std::string_view ld_cache) {
  std::vector<std::string> paths;
  AppendFolders(library_path, &paths);
  for (std::string& path : CachedPaths(ld_cache, kDriverName)) paths.push_back(std::move(path));
  for (const char* folder : kDriverFolders)
    paths.push_back(std::string(folder) + "/" + kDriverName);
  std::erase_if(paths, IsStubLibrary);
  return paths;
}

bool IsStubLibrary(const std::string& path) {
  char resolved[PATH_MAX];
  const std::string_view real =
      realpath(path.c_str(), resolved) == nullptr ? std::string_view(path) : resolved;
  return real.find("/stubs/") != std::string_view::npos;
}

}  // namespace spillway::driver
