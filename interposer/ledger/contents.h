// Which address of ours lies at which device address, as far as copies and sets show.
//
// execute reports copies and sets, with the contents lock held; any thread may call empty() without
// it. When a fact is used, the ledger tells its allocation and what lives where it points.
//
// An overwritten pointer is kept while work on other streams may still follow it. A freed block's
// content explains words that a scan finds in the next block.
// Invariants
//  1. A pointer occupies eight bytes. At most one pointer at a place is current.
//  2. Current pointers are visited. Overwritten pointers are visited until `is_over` says that no
//     work can see them. Freed pointers are never visited.
// Never: reads memory (word_scan.h does).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

// The overwriting operation's place in its stream (execute/state/timeline.h). Null: complete.
struct Overwrite {
  const void* stream = nullptr;
  std::uint64_t sequence = 0;
};

struct HeldWord {
  CUdeviceptr at;
  CUdeviceptr word;
};

class Contents {
 public:
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  std::size_t size() const { return count_.load(std::memory_order_relaxed); }

  void Erase(CUdeviceptr base, std::size_t bytes, Overwrite by);
  void Put(const HeldWord& held);
  // Erases `to`, then puts all pointers that the copy may find. The source may overlap.
  void Copy(CUdeviceptr to, const Contents& source, CUdeviceptr from, std::size_t bytes,
            Overwrite by);
  // The program has freed the bytes: nothing follows their pointers. Until they are overwritten,
  // the pointers still explain words in them.
  void Freed(CUdeviceptr base, std::size_t bytes);
  void Forget(CUdeviceptr base, std::size_t bytes);

  bool HoldsAny(CUdeviceptr base, std::size_t bytes) const;
  // A copy or set has put this word there, even if it was overwritten or freed since.
  bool Explains(const HeldWord& held) const;
  template <class IsOver, class Visit>
  void ForAll(IsOver is_over, Visit visit) {
    if (!empty())
      ForEach(words_.begin()->first, words_.rbegin()->first - words_.begin()->first + 1, is_over,
              visit);
  }

  // Calls visit(word, overwrite) for each pointer that work may find in the bytes, with the
  // operation that overwrote it, if any. Pointers for which is_over(overwrite) are forgotten.
  template <class IsOver, class Visit>
  void ForEach(CUdeviceptr base, std::size_t bytes, IsOver is_over, Visit visit) {
    auto at = FirstOverlapping(base);
    while (at != words_.end() && at->first < base + bytes) {
      if (at->second.state == State::kOverwritten && is_over(at->second.by)) {
        at = Remove(at);
        continue;
      }
      if (at->second.state != State::kFreed) visit(at->second.word, at->second.by);
      ++at;
    }
  }

 private:
  enum class State : std::uint8_t { kCurrent, kOverwritten, kFreed };
  struct Held {
    CUdeviceptr word;
    State state = State::kCurrent;
    Overwrite by;
  };
  using Words = std::multimap<CUdeviceptr, Held>;

  Words::iterator FirstOverlapping(CUdeviceptr base);
  Words::const_iterator FirstOverlapping(CUdeviceptr base) const;
  Words::iterator Remove(Words::iterator at);

  Words words_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace spillway::interposer
