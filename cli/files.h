// File system queries whose errors are values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace spillway::cli {

class MappedFile {
 public:
  static base::Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::string_view view() const { return view_; }

 private:
  explicit MappedFile(std::string_view view) : view_(view) {}

  std::string_view view_;
};

// Absolute by the working directory; links are not resolved.
std::string AbsolutePath(const std::string& path);

// Nullopt: no such file.
std::optional<std::string> ResolvedPath(const std::string& path);

// "/a/b" from "/a/b/c"; "." from "c".
std::string ParentFolder(const std::string& path);

base::Status MakePrivateFolders(const std::string& path);

// Of a kernel file such as /proc/sys/vm/max_map_count, without newline. Nullopt: unreadable.
std::optional<std::string> ReadFirstLine(const std::string& path);

std::string EnvironmentValue(const char* name);

}  // namespace spillway::cli
