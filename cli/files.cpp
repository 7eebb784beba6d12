#include "cli/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/file.h"
#include "base/lines.h"

namespace spillway::cli {

base::Result<MappedFile> MappedFile::Open(const std::string& path) {
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return base::ErrnoError("cannot read " + path);
  struct stat facts = {};
  if (fstat(fd.get(), &facts) != 0) return base::ErrnoError("cannot read " + path);
  if (facts.st_size == 0) return MappedFile({});
  const auto size_bytes = static_cast<std::size_t>(facts.st_size);
  void* address = mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return base::ErrnoError("cannot read " + path);
  return MappedFile({static_cast<const char*>(address), size_bytes});
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

base::Status MakePrivateFolders(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return base::Ok();
  base::Status failed = base::ErrnoError("cannot make " + path);
  if (failed.error().code != ENOENT || path == "/" || path.empty()) return failed;
  if (base::Status parent = MakePrivateFolders(ParentFolder(path)); !parent.ok()) return parent;
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return base::Ok();
  return base::ErrnoError("cannot make " + path);
}

std::optional<std::string> ReadFirstLine(const std::string& path) {
  const base::Result<std::string> text = base::ReadFile(path);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  const auto line = base::TakeLine(rest);
  return line ? std::optional<std::string>(*line) : std::nullopt;
}

std::string EnvironmentValue(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace spillway::cli
