// The table behind cuGetProcAddress. entries.py generates it from the toolkit's cudaTypedefs.h.
#pragma once

#include <cstddef>

namespace spillway::simulator {

struct Entry {
  const char* name;  // without suffix: "cuMemAlloc"
  int version;       // CUDA version that introduced this form: 3020
  bool per_thread;   // the form for the per-thread default stream
  void* function;    // the exported symbol of this library
};

const Entry* Entries();
std::size_t EntryCount();

}  // namespace spillway::simulator
