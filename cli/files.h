// Small questions to the file system, answered without exceptions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace spillway::cli {

// A file's bytes, read through a private mapping for as long as this object lives.
class MappedFile {
 public:
  // An empty file has an empty view.
  static base::Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view view() const { return view_; }

 private:
  explicit MappedFile(std::string_view view) : view_(view) {}

  std::string_view view_;
};

// `path` itself when absolute, else under the working directory; not resolved.
std::string AbsolutePath(const std::string& path);

// Every symbolic link resolved; nothing when the file does not exist.
std::optional<std::string> ResolvedPath(const std::string& path);

// "/a/b" of "/a/b/c"; "." of "c".
std::string ParentFolder(const std::string& path);

// Makes the folder and its parents, readable by the user alone.
base::Status MakePrivateFolders(const std::string& path);

// The text of a kernel file such as /proc/sys/vm/max_map_count without its line end; nothing when
// unreadable.
std::optional<std::string> ReadFirstLine(const std::string& path);

// The environment variable's value; empty when unset.
std::string EnvironmentValue(const char* name);

}  // namespace spillway::cli
