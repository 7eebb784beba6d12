// Describes where a function lies: "libspillway.so:cuInit", "missing", or the library without a
// symbol.
//
// For the small programs of this folder; one thread.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <string>

namespace spillway::test {

inline std::string Whereabouts(const void* function) {
  if (function == nullptr) return "missing";
  Dl_info info;
  if (dladdr(const_cast<void*>(function), &info) == 0) return "nowhere";
  const char* const slash = std::strrchr(info.dli_fname, '/');
  std::string text = slash == nullptr ? info.dli_fname : slash + 1;
  if (info.dli_sname != nullptr && info.dli_saddr == function)
    text += std::string(":") + info.dli_sname;
  return text;
}

}  // namespace spillway::test
