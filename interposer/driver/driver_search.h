// Where the real libcuda.so.1 may be, in the dynamic loader's search order.
//
// Called by driver_loader, once. Owns nothing; only reads the named files.
// Never: opens a candidate, or names the toolkit's stub library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway::driver {

// From `library_path` (like LD_LIBRARY_PATH; may be null), then the loader's cache (`ld_cache`),
// then the usual folders of distributions, containers and WSL.
std::vector<std::string> DriverCandidates(const char* library_path, std::string_view ld_cache);

// The values of a glibc loader cache ("glibc-ld.so.cache1.1") for `library`; none if it is damaged.
std::vector<std::string> CachedPaths(std::string_view ld_cache, std::string_view library);

// Whether the path, with symbolic links resolved, has a folder called `stubs`.
bool IsStubLibrary(const std::string& path);

}  // namespace spillway::driver
