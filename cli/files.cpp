#include "cli/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>

namespace spillway::cli {

std::optional<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat facts = {};
  std::optional<MappedFile> file;
  if (fstat(fd, &facts) == 0 && facts.st_size > 0) {
    const auto size_bytes = static_cast<std::size_t>(facts.st_size);
    void* address = mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address != MAP_FAILED) file.emplace(MappedFile({static_cast<const char*>(address), size_bytes}));
  } else if (facts.st_size == 0) {
    file.emplace(MappedFile({}));
  }
  const int open_errno = errno;
  close(fd);
  errno = open_errno;
  return file;
}

MappedFile::~MappedFile() {
  if (!view_.empty()) munmap(const_cast<char*>(view_.data()), view_.size());
}

std::string AbsolutePath(const std::string& path) {
  if (!path.empty() && path.front() == '/') return path;
  char folder[PATH_MAX];
  if (getcwd(folder, sizeof folder) == nullptr) return path;
  return std::string(folder) + "/" + path;
}

std::optional<std::string> ResolvedPath(const std::string& path) {
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) return std::nullopt;
  return std::string(resolved);
}

std::string ParentFolder(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool MakePrivateFolders(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return true;
  if (errno != ENOENT || path == "/" || path.empty()) return false;
  if (!MakePrivateFolders(ParentFolder(path))) return false;
  return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
}

std::optional<std::string> ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::string EnvironmentValue(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace spillway::cli
