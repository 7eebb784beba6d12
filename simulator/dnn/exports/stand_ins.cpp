// A weak stand-in for every documented function of a library: prints once that the function is
// missing, and answers NOT_SUPPORTED. Built per library with SPILLWAY_EXPORT_LIST (its functions)
// and SPILLWAY_NOT_SUPPORTED (its status).
#include <cstdio>

namespace {

int NotSimulated(const char* function, bool* told) {
  if (!*told) std::fprintf(stderr, "spillway simulator: %s is not simulated\n", function);
  *told = true;
  return SPILLWAY_NOT_SUPPORTED;
}

}  // namespace

#define SPILLWAY_EXPORT(name)                                          \
  extern "C" __attribute__((weak, visibility("default"))) int name() { \
    static bool told = false;                                          \
    return NotSimulated(#name, &told);                                 \
  }
#include SPILLWAY_EXPORT_LIST
