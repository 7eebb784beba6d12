// Chunks that no range holds, by size.
//
// Called by chunk_pool. Owns nothing. Of equal sizes, the chunk that was added last is taken first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "interposer/driver/chunk.h"

namespace spillway::interposer {

class FreeChunks {
 public:
  bool empty() const { return chunks_.empty(); }
  size_t bytes() const { return bytes_; }

  void Add(Chunk* chunk) {
    chunks_.insert(FirstAbove(chunk->bytes), chunk);
    bytes_ += chunk->bytes;
    chunk->is_free = true;
  }
  void Remove(Chunk* chunk) {
    auto at = FirstAbove(chunk->bytes) - 1;
    while (*at != chunk) --at;
    Take(at);
  }
  // Takes the largest chunks that fit, one after the other. Returns the bytes that are missing.
  size_t TakeUpTo(size_t bytes, Chunks* out) {
    for (auto after = FirstAbove(bytes); after != chunks_.begin(); after = FirstAbove(bytes)) {
      out->push_back(Take(after - 1));
      bytes -= out->back()->bytes;
    }
    return bytes;
  }
  // What TakeUpTo would return.
  size_t MissingFor(size_t bytes) const {
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
      bytes -= (*chunk)->bytes <= bytes ? (*chunk)->bytes : 0;
    return bytes;
  }
  // The smallest chunk of at least that size, or the largest. There is one.
  Chunk* TakeAtLeast(size_t bytes) {
    const auto chunk = std::find_if(chunks_.begin(), chunks_.end(),
                                    [bytes](const Chunk* free) { return free->bytes >= bytes; });
    return Take(chunk == chunks_.end() ? chunk - 1 : chunk);
  }

 private:
  std::vector<Chunk*>::iterator FirstAbove(size_t bytes) {
    return std::upper_bound(chunks_.begin(), chunks_.end(), bytes,
                            [](size_t size, const Chunk* chunk) { return size < chunk->bytes; });
  }
  Chunk* Take(std::vector<Chunk*>::iterator at) {
    Chunk* const chunk = *at;
    chunks_.erase(at);
    bytes_ -= chunk->bytes;
    chunk->is_free = false;
    return chunk;
  }

  std::vector<Chunk*> chunks_;  // by size, ascending
  size_t bytes_ = 0;
};

}  // namespace spillway::interposer
