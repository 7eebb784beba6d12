// Where the real libcuda.so.1 may lie, in the order in which the dynamic loader would have looked.
//
// Called by driver_loader, once. Pure but for reading the named files; owns nothing.
//
// It never opens a candidate and never names the toolkit's stub library, which has every function
// and no driver.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spillway::driver {

// Paths to try: the folders of `library_path` (colon-separated, as in LD_LIBRARY_PATH; may be
// null), what the loader's cache file says (its bytes in `ld_cache`), then the folders where
// distributions, containers and WSL put the driver.
std::vector<std::string> DriverCandidates(const char* library_path, std::string_view ld_cache);

// The values that a glibc loader cache (format "glibc-ld.so.cache1.1") holds for `library`. Damaged
// bytes: no values.
std::vector<std::string> CachedPaths(std::string_view ld_cache, std::string_view library);

// True for a path, symbolic links resolved, inside a folder called `stubs`.
bool IsStubLibrary(const std::string& path);

}  // namespace spillway::driver
