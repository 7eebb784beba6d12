#include "interposer/entry/touch_hooks.h"

namespace spillway::entry {
namespace {

void AddDecompressions(const CUmemDecompressParams* list, size_t count, Collector& add) {
  for (size_t i = 0; list && i < count; ++i) {
    add(list[i].src);
    add(list[i].dst);
    add(list[i].dstActBytes);
  }
}

}  // namespace
}  // namespace spillway::entry

using spillway::entry::AddDecompressions;

SPILLWAY_ASYNCHRONOUS(cuMemBatchDecompressAsync,
                      (CUmemDecompressParams * list, size_t count, unsigned int flags,
                       size_t* failed, CUstream s),
                      (list, count, flags, failed, s), Effect::kLaunches,
                      AddDecompressions(list, count, add))
