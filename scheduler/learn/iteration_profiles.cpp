#include "scheduler/learn/iteration_profiles.h"

#include <algorithm>

#include "scheduler/learn/period_finder.h"

namespace spillway::scheduler {

std::vector<IterationProfiles::Place> IterationProfiles::PlacesOf(const std::vector<uint64_t>& events) {
  const int64_t size = static_cast<int64_t>(events.size());
  std::vector<Place> places;
  places.reserve(events.size());
  for (int64_t next = 0; next < size; ++next) {
    uint64_t hash = kContext;
    for (int64_t back = kContext; back > 0; --back)
      hash = MixToken(hash, events[static_cast<std::size_t>((next - back + size) % size)]);
    places.push_back({hash, next});
  }
  std::sort(places.begin(), places.end());
  return places;
}

int32_t IterationProfiles::Add(std::vector<uint64_t> events) {
  Entry entry;
  entry.places = PlacesOf(events);
  entry.fingerprint = entry.places.size();
  for (const Place& place : entry.places) entry.fingerprint += MixToken(1, place.context_hash);
  entry.events = std::move(events);
  entry.last_followed = ++clock_;
  for (int32_t i = 0; i < size(); ++i) {
    if (fingerprint(i) == entry.fingerprint) return i;
  }
  if (size() < kMost) {
    entries_.push_back(std::move(entry));
    return size() - 1;
  }
  const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.last_followed < b.last_followed;
  });
  *oldest = std::move(entry);
  return static_cast<int32_t>(oldest - entries_.begin());
}

std::optional<int64_t> IterationProfiles::Nearest(const Entry& entry, uint64_t context_hash, int64_t from) {
  const auto begin = std::lower_bound(entry.places.begin(), entry.places.end(), Place{context_hash, 0});
  if (begin == entry.places.end() || begin->context_hash != context_hash) return std::nullopt;
  const auto ahead = std::lower_bound(begin, entry.places.end(), Place{context_hash, from});
  const bool found = ahead != entry.places.end() && ahead->context_hash == context_hash;
  return found ? ahead->next : begin->next;
}

std::optional<ProfilePosition> IterationProfiles::Find(const std::vector<uint64_t>& last_events,
                                                       ProfilePosition current) const {
  uint64_t hash = kContext;
  for (uint64_t event : last_events) hash = MixToken(hash, event);
  for (int32_t turn = 0; turn < size(); ++turn) {
    const int32_t profile = current.profile < 0 ? turn : (current.profile + turn) % size();
    const int64_t from = profile == current.profile ? current.next : 0;
    if (const auto next = Nearest(entries_[Index(profile)], hash, from))
      return ProfilePosition{profile, *next};
  }
  return std::nullopt;
}

}  // namespace spillway::scheduler
