#include "interposer/ledger/passed_through.h"

namespace spillway::interposer {

size_t PassedThrough::Add(std::uint64_t key, size_t bytes, CUcontext context) {
  const auto [at, is_new] = entries_.try_emplace(key, Entry{bytes, context});
  if (is_new) return 0;
  const size_t before_bytes = at->second.bytes;
  at->second = {bytes, context};
  return before_bytes;
}

size_t PassedThrough::Remove(std::uint64_t key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return 0;
  const size_t bytes = at->second.bytes;
  entries_.erase(at);
  return bytes;
}

size_t PassedThrough::RemoveAllIn(CUcontext context) {
  size_t bytes = 0;
  for (auto at = entries_.begin(); at != entries_.end();) {
    if (at->second.context == context) {
      bytes += at->second.bytes;
      at = entries_.erase(at);
    } else {
      ++at;
    }
  }
  return bytes;
}

}  // namespace spillway::interposer
