// Where paths lead to. Looks at the file system, as links may lead anywhere.
#pragma once

#include <filesystem>
#include <string>

namespace spillway::base {

// As far as the path exists, links are followed. Empty if that is not possible.
inline std::filesystem::path Canonical(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  return error ? std::filesystem::path() : canonical;
}

// Whether two paths lead to one file. A path that cannot be followed leads to none.
inline bool IsSamePath(const std::string& a, const std::string& b) {
  const std::filesystem::path one = Canonical(a);
  return !one.empty() && one == Canonical(b);
}

// Whether `path` is `folder` or below it, itself or by a link. Both are whole paths; what cannot be
// followed counts as inside.
inline bool IsInFolder(const std::string& path, const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path whole = Canonical(folder), named = fs::path(path).lexically_normal();
  for (const fs::path& place : {Canonical(named), Canonical(named.parent_path())}) {
    if (whole.empty() || place.empty()) return true;
    const fs::path rest = place.lexically_relative(whole);
    if (!rest.empty() && *rest.begin() != "..") return true;
  }
  return false;
}

}  // namespace spillway::base
