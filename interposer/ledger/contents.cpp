#include "interposer/ledger/contents.h"

namespace spillway::interposer {
namespace {

// A pointer that begins up to seven bytes before an interval reaches into it.
constexpr CUdeviceptr ReachOf(CUdeviceptr base) { return base >= 7 ? base - 7 : 0; }

}  // namespace

Contents::Words::iterator Contents::FirstOverlapping(CUdeviceptr base) {
  return words_.lower_bound(ReachOf(base));
}

Contents::Words::const_iterator Contents::FirstOverlapping(CUdeviceptr base) const {
  return words_.lower_bound(ReachOf(base));
}

Contents::Words::iterator Contents::Remove(Words::iterator at) {
  count_.store(words_.size() - 1, std::memory_order_relaxed);
  return words_.erase(at);
}

void Contents::Erase(CUdeviceptr base, std::size_t bytes, Overwrite by) {
  if (empty()) return;
  auto at = FirstOverlapping(base);
  while (at != words_.end() && at->first < base + bytes) {
    Held& held = at->second;
    if (held.state == State::kFreed || (held.state == State::kCurrent && !by.stream)) {
      at = Remove(at);
      continue;
    }
    if (held.state == State::kCurrent) {
      held.state = State::kOverwritten;
      held.by = by;
    }
    ++at;
  }
}

void Contents::Put(const HeldWord& held) {
  words_.emplace(held.at, Held{.word = held.word, .by = {}});
  count_.store(words_.size(), std::memory_order_relaxed);
}

void Contents::Copy(CUdeviceptr to, const Contents& source, CUdeviceptr from, std::size_t bytes,
                    Overwrite by) {
  std::vector<HeldWord> found;
  const Words& words = source.words_;
  for (auto at = words.lower_bound(from); at != words.end() && at->first < from + bytes; ++at) {
    const bool whole = from + bytes - at->first >= sizeof(CUdeviceptr);
    // Includes overwritten words: the copy may run before the overwriting operation.
    if (whole && at->second.state != State::kFreed)
      found.push_back({at->first - from + to, at->second.word});
  }
  Erase(to, bytes, by);
  for (const HeldWord& held : found) Put(held);
}

void Contents::Freed(CUdeviceptr base, std::size_t bytes) {
  if (empty()) return;
  for (auto at = FirstOverlapping(base); at != words_.end() && at->first < base + bytes; ++at) {
    at->second.state = State::kFreed;
  }
}

void Contents::Forget(CUdeviceptr base, std::size_t bytes) {
  if (empty()) return;
  words_.erase(FirstOverlapping(base), words_.lower_bound(base + bytes));
  count_.store(words_.size(), std::memory_order_relaxed);
}

bool Contents::HoldsAny(CUdeviceptr base, std::size_t bytes) const {
  if (empty()) return false;
  for (auto at = FirstOverlapping(base); at != words_.end() && at->first < base + bytes; ++at) {
    if (at->second.state != State::kFreed) return true;
  }
  return false;
}

bool Contents::Explains(const HeldWord& held) const {
  const auto [first, last] = words_.equal_range(held.at);
  for (auto at = first; at != last; ++at) {
    if (at->second.word == held.word) return true;
  }
  return false;
}

}  // namespace spillway::interposer
