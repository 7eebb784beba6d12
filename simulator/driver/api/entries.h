// The table behind cuGetProcAddress, which entries.py generates from the toolkit's cudaTypedefs.h.
#pragma once

#include <cstddef>

namespace spillway::simulator {

struct Entry {
  const char* name;  // without suffix: "cuMemAlloc"
  int version;       // CUDA version that introduced this form: 3020
  bool per_thread;   // the form for the per-thread default stream
  void* function;
};

const Entry* Entries();
std::size_t EntryCount();

}  // namespace spillway::simulator
