// A weak stand-in for every documented function of a library: it says once what is missing and
// answers NOT_SUPPORTED. Implemented functions replace theirs at link time. Built once per library
// with SPILLWAY_EXPORT_LIST (its list of functions) and SPILLWAY_NOT_SUPPORTED (its status value).
#include <cstdio>

namespace {

int NotSimulated(const char* function, bool* told) {
  if (!*told) std::fprintf(stderr, "spillway simulator: %s is not simulated\n", function);
  *told = true;
  return SPILLWAY_NOT_SUPPORTED;
}

}  // namespace

#define SPILLWAY_EXPORT(name)                   \
  extern "C" __attribute__((weak)) int name() { \
    static bool told = false;                   \
    return NotSimulated(#name, &told);          \
  }
#include SPILLWAY_EXPORT_LIST
