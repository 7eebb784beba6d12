#include "simulator/driver/memory/first_uses.h"

#include <algorithm>
#include <iterator>

namespace spillway::simulator {

void FirstUses::NoteWritten(std::uintptr_t base, std::size_t size_bytes) {
  if (size_bytes == 0) return;
  std::uintptr_t end = base + size_bytes;
  auto next = written_.upper_bound(base);
  if (next != written_.begin() && std::prev(next)->second >= base) --next;
  while (next != written_.end() && next->first <= end) {
    base = std::min(base, next->first);
    end = std::max(end, next->second);
    next = written_.erase(next);
  }
  written_.emplace(base, end);
}

std::vector<ByteRange> FirstUses::TakeUnwritten(std::uintptr_t base, std::size_t size_bytes,
                                                std::uint64_t id) {
  const std::uintptr_t end = base + size_bytes;
  const auto [known, is_first] = named_.try_emplace(base, id);
  const bool was_named = !is_first && known->second == id;
  known->second = id;
  std::vector<ByteRange> unwritten;
  std::uintptr_t at = base;
  auto next = written_.upper_bound(base);
  if (next != written_.begin() && std::prev(next)->second > base) --next;
  for (; !was_named && next != written_.end() && next->first < end; ++next) {
    if (next->first > at) unwritten.push_back({at, next->first - at});
    at = std::min(next->second, end);
  }
  if (!was_named && at < end) unwritten.push_back({at, end - at});
  Forget(base, end);
  return unwritten;
}

void FirstUses::Forget(std::uintptr_t base, std::uintptr_t end) {
  auto next = written_.upper_bound(base);
  if (next != written_.begin() && std::prev(next)->second > base) --next;
  while (next != written_.end() && next->first < end) {
    const auto [begins, ends] = *next;
    next = written_.erase(next);
    if (begins < base) written_.emplace(begins, base);
    if (ends > end) next = written_.emplace(end, ends).first;
  }
}

}  // namespace spillway::simulator
