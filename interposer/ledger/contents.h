// What device memory is known to hold: which address of ours lies at which device address.
//
// Called by execute, which tells what copies and sets put where, with the contents lock held;
// empty() by any thread without it. Owns plain facts about addresses; whose memory they lie in, and
// whether anything lives where they point, is asked of the ledger when a fact is used.
//
// A pointer that was overwritten or freed is kept for a while: work on other streams may be ahead
// of the overwriting operation and still follow it, and what a freed block held explains what is
// found in the next one.
//
// Invariants
//  1. A pointer occupies eight bytes; at one place at most one pointer is current, all others there
//  were overwritten.
//  2. What is current is visited; what was overwritten is visited until `is_over` says that nobody
//  can see it any
//     more; what was freed is never visited.
// Never: looks into memory (word_scan.h does).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

// The operation that overwrote something: its place in its stream (execute/timeline.h). No stream:
// it is over.
struct Overwrite {
  const void* stream = nullptr;
  std::uint64_t sequence = 0;
};

// Addresses of ours and where they lie.
struct HeldWord {
  CUdeviceptr at;
  CUdeviceptr word;
};

class Contents {
 public:
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  std::size_t size() const { return count_.load(std::memory_order_relaxed); }

  // The bytes are overwritten; whatever pointers they held are current no more.
  void Erase(CUdeviceptr base, std::size_t bytes, Overwrite by);
  void Put(const HeldWord& held);
  // As Erase(to) and Put of all that is current in the source, which may overlap the destination.
  void Copy(CUdeviceptr to, const Contents& source, CUdeviceptr from, std::size_t bytes,
            Overwrite by);
  // The program has freed the bytes: nobody follows what they hold, until they are overwritten it
  // stays an explanation.
  void Freed(CUdeviceptr base, std::size_t bytes);
  // The addresses serve something else from now on.
  void Forget(CUdeviceptr base, std::size_t bytes);

  bool HoldsAny(CUdeviceptr base, std::size_t bytes) const;
  // A copy or set has put this word there, and nothing is known to have followed it.
  bool Explains(const HeldWord& held) const;
  template <class IsOver, class Visit>
  void ForAll(IsOver is_over, Visit visit) {
    if (!empty())
      ForEach(words_.begin()->first, words_.rbegin()->first - words_.begin()->first + 1, is_over,
              visit);
  }

  // Calls visit(word, overwrite) for each pointer in the bytes that work may find there, with the
  // operation that overwrote it, if any; is_over(overwrite) says whether what it overwrote can be
  // seen no more. Forgets that.
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

  Words words_;  // by the place where they lie
  std::atomic<std::size_t> count_{0};
};

}  // namespace spillway::interposer
