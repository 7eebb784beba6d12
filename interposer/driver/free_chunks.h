// Chunks that no range holds, by size.
//
// Called by chunk_pool. Owns nothing. Of equal sizes, the last added chunk is taken first.
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
  // Takes the largest chunks that fit and that `accepts` allows. Returns the missing bytes.
  template <class Accepts>
  size_t TakeUpTo(size_t bytes, Accepts accepts, Chunks* out) {
    for (size_t i = CountUpTo(bytes); i > 0;) {
      const auto chunk = chunks_.begin() + static_cast<std::ptrdiff_t>(--i);
      if (!accepts(**chunk)) continue;
      out->push_back(Take(chunk));
      bytes -= out->back()->bytes;
      i = std::min(i, CountUpTo(bytes));
    }
    return bytes;
  }
  template <class Accepts>
  size_t BytesOf(Accepts accepts) const {
    size_t bytes = 0;
    for (const Chunk* chunk : chunks_) bytes += accepts(*chunk) ? chunk->bytes : 0;
    return bytes;
  }
  // What TakeUpTo would return.
  template <class Accepts>
  size_t MissingFor(size_t bytes, Accepts accepts) const {
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
      bytes -= (*chunk)->bytes <= bytes && accepts(**chunk) ? (*chunk)->bytes : 0;
    return bytes;
  }
  // Of those that `accepts` allows, the smallest of at least that size, or the largest. Null: none.
  template <class Accepts>
  Chunk* TakeAtLeast(size_t bytes, Accepts accepts) {
    auto best = chunks_.end();
    for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
      if (!accepts(**chunk)) continue;
      best = chunk;
      if ((*chunk)->bytes >= bytes) break;
    }
    return best == chunks_.end() ? nullptr : Take(best);
  }

 private:
  std::vector<Chunk*>::iterator FirstAbove(size_t bytes) {
    return std::upper_bound(chunks_.begin(), chunks_.end(), bytes,
                            [](size_t size, const Chunk* chunk) { return size < chunk->bytes; });
  }
  size_t CountUpTo(size_t bytes) {
    return static_cast<size_t>(FirstAbove(bytes) - chunks_.begin());
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
