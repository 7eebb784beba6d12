// A plug-in whose constructor uses CUDA inside dlopen, while the loader's lock is held.
extern "C" int cuInit(unsigned);

namespace {
[[maybe_unused]] const int initialised = cuInit(0);
}
