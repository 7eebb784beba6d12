// The iterations that a job is known to repeat, as sequences of event identities, and where in them a few events stand.
//
// Owned by the iteration detector, on one thread. Plain values.
//
// Invariants
//  1. No two sequences are rotations of each other.
//  2. At most kMost sequences; a new one takes the place of the one that was followed longest ago.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace spillway::scheduler {

struct ProfilePosition {
  int32_t profile = -1;
  int64_t next = 0;  // the event that is expected now
};

class IterationProfiles {
 public:
  static constexpr int32_t kMost = 8;
  static constexpr int kContext = 4;  // events by which a place is recognised

  // The profile's number: a new one's, or that of a rotation of it that is known. Not for fewer than kContext events.
  int32_t Add(std::vector<uint64_t> events);
  const std::vector<uint64_t>& events(int32_t profile) const { return entries_[Index(profile)].events; }
  // The same for every rotation of the same sequence: what a restarted job is recognised by.
  uint64_t fingerprint(int32_t profile) const { return entries_[Index(profile)].fingerprint; }
  int32_t size() const { return static_cast<int32_t>(entries_.size()); }
  void NoteFollowed(int32_t profile) { entries_[Index(profile)].last_followed = ++clock_; }

  // Where the last kContext events stand: in `current` the nearest place ahead, else in any other profile.
  std::optional<ProfilePosition> Find(const std::vector<uint64_t>& last_events,
                                      ProfilePosition current) const;

 private:
  struct Place {
    uint64_t context_hash;
    int64_t next;
    bool operator<(const Place& other) const {
      return context_hash != other.context_hash ? context_hash < other.context_hash : next < other.next;
    }
  };
  struct Entry {
    std::vector<uint64_t> events;
    std::vector<Place> places;  // sorted
    uint64_t fingerprint = 0;
    int64_t last_followed = 0;
  };
  static std::size_t Index(int32_t profile) { return static_cast<std::size_t>(profile); }
  static std::vector<Place> PlacesOf(const std::vector<uint64_t>& events);
  static std::optional<int64_t> Nearest(const Entry& entry, uint64_t context_hash, int64_t from);

  std::vector<Entry> entries_;
  int64_t clock_ = 0;
};

}  // namespace spillway::scheduler
