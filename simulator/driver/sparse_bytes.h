// Copies and clears large stretches of memory at the cost of the pages that were ever written.
//
// Used by: copies and sets in the compute mode `tags`, where gigabytes of device memory hold a few bytes each; the results
// are those of memmove and memset, byte by byte. Under the engine's mutex.
//
// Which pages exist is asked of the kernel (/proc/self/pagemap; pages of files also by mincore). Where it does not answer,
// every page counts as existing: slower and never wrong.
#pragma once

#include <cstddef>

namespace spillway::simulator {

void SparseCopy(void* target, const void* source, std::size_t size_bytes);
void SparseClear(void* target, std::size_t size_bytes);

// From now on memory may lie in files that other processes write too: their pages may exist unseen by this process.
void ExpectSharedFiles();

}  // namespace spillway::simulator
