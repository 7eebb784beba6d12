#include "scheduler/learn/period_finder.h"

#include <utility>

namespace spillway::scheduler {

uint64_t MixToken(uint64_t hash, uint64_t token) {
  uint64_t x = (hash ^ token) * 0x9e3779b97f4a7c15u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

PeriodFinder::PeriodFinder(PeriodFinderOptions options)
    : options_(options), last_tokens_(static_cast<std::size_t>(options.context)) {}

uint64_t PeriodFinder::ContextHash() const {
  const std::size_t size = last_tokens_.size();
  uint64_t hash = size;
  for (std::size_t i = 0; i < size; ++i)
    hash = MixToken(hash, last_tokens_[(static_cast<std::size_t>(position_) + i) % size]);
  return hash;
}

int64_t PeriodFinder::Replace(uint64_t hash, int64_t position) {
  if (static_cast<int64_t>(places_.size()) >= options_.longest) {
    older_places_ = std::move(places_);
    places_.clear();
  }
  const auto [place, is_new] = places_.try_emplace(hash, position);
  if (!is_new) return std::exchange(place->second, position);
  const auto older = older_places_.find(hash);
  return older == older_places_.end() ? -1 : older->second;
}

int64_t PeriodFinder::Add(uint64_t token) {
  last_tokens_[static_cast<std::size_t>(position_) % last_tokens_.size()] = token;
  const int64_t position = position_++;
  if (position_ < options_.context) return 0;
  const int64_t last = Replace(ContextHash(), position);
  const int64_t distance = last < 0 ? 0 : position - last;
  if (distance == 0 || distance > options_.longest) {
    run_ = 0;
    return 0;
  }
  run_ = distance == distance_ && run_ > 0 ? run_ + 1 : 1;
  distance_ = distance;
  return run_ >= distance_ ? distance_ : 0;
}

}  // namespace spillway::scheduler
