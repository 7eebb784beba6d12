// Copies and clears large stretches of memory at the cost of the pages that were ever written.
// Equal to memmove and memset, byte by byte.
//
// The kernel knows which pages exist: /proc/self/pagemap, the file behind a mapping (SEEK_DATA), or
// mincore for an unknown file. Without an answer every page counts as existing. Large stretches of
// zero release their pages, so that later operations on them are cheap.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spillway::simulator {

void SparseCopy(void* target, const void* source, std::size_t size_bytes);
void SparseClear(void* target, std::size_t size_bytes);

// Visits the parts that may hold other bytes than zeros, in ascending order. A range that may not
// be read is visited or read itself, so that a body's access faults.
void ForWritten(const void* base, std::uint64_t size_bytes,
                void (*visit)(void* context, const void* begin, const void* end), void* context);

// Records where a block is shown: private anonymous memory (`file` is -1), or the file's beginning.
void NoteBlockMapping(std::uintptr_t base, std::size_t size_bytes, int file, bool on_host);
void NoteFileMapping(std::uintptr_t base, std::size_t size_bytes);
void ForgetMapping(std::uintptr_t base);

}  // namespace spillway::simulator
