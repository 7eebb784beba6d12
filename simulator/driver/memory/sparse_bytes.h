// Copies and clears large stretches of memory at the cost of the pages that were ever written.
//
// Used by: copies and sets in the compute mode `tags`, where gigabytes of device memory hold a few
// bytes each; the results are those of memmove and memset, byte by byte. Under the engine's mutex.
//
// Which pages exist is asked of the kernel: /proc/self/pagemap, the file behind a mapping
// (SEEK_DATA), or mincore where the file is not known. Where it does not answer, every page counts
// as existing: slower and never wrong. Pages of large stretches of blocks that become or turn out
// to be zero are given back: what was written or looked through once is as cheap again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway::simulator {

void SparseCopy(void* target, const void* source, std::size_t size_bytes);
void SparseClear(void* target, std::size_t size_bytes);

// Here the simulator shows a block: private anonymous memory, or the beginning of `file` where that
// is not -1.
void NoteBlockMapping(std::uintptr_t base, std::size_t size_bytes, int file);
// Here a file is mapped, or may be: pages may exist that this process never touched.
void NoteFileMapping(std::uintptr_t base, std::size_t size_bytes);
void ForgetMapping(std::uintptr_t base);

}  // namespace spillway::simulator
