// Decides from shared memory, without a message, when a process may copy over the link.
//
// Called before each copy, under the copying code's lock; one request per direction at a time.
//
// Note [A bucket with a queue]
// All processes share one token bucket per direction. `free_at_ns` is when all admitted copies will
// be done. A copy is admitted while that is at most `ahead_ns` in the future, and advances it. So
// the sum exceeds the link's rate by at most `ahead_ns` and one copy, and an idle link admits any
// copy. Among waiting requests the smallest tag goes first. A tag is the process's previous tag, or
// the lane's virtual time if later, plus bytes over weight. (Self-clocked fair queueing, Golestani
// 1994.) The queue never leaves the link idle: once less than half of `ahead_ns` is queued, any
// request is admitted. A process that missed its turn keeps its smaller tag, and with it a larger
// lead. It keeps its place until shortly after the time at which it promised to ask again.
//
// Note [Starved processes copy alone]
// A lane may repeatedly have no capacity when a process's bound expires: another process breaks the
// rules. The starved process then uses a private bucket at its own weight's rate for a second.
//
// Invariants
//  1. Processes that always want to copy get bytes in proportion to their weights, to within one
//     copy.
//  2. The wait for a copy is bounded by the process's own weight, whatever the shared memory holds.
#pragma once

#include "protocol/link_page.h"

namespace spillway::protocol {

// A lane that claims to be busy for longer was corrupted.
int64_t LatestPlausibleFreeNs(const LinkTerms& terms, Direction direction, int64_t now_ns);

class LinkTurn {
 public:
  // Larger copies ask once per piece, which keeps other processes' waits short.
  static constexpr int64_t kMostBytes = int64_t{32} << 20;

  LinkTurn(const LinkTerms& terms, LinkLanes& lanes, uint32_t slot)
      : terms_(terms), lanes_(lanes), slot_(slot) {}

  // 0: copy now; the copy is counted. Otherwise: ask again for the same copy after this time.
  int64_t Ask(Direction direction, int64_t size_bytes, int64_t now_ns);
  void Withdraw(Direction direction);

 private:
  struct Request {
    bool waits = false;
    uint64_t tag = 0;
    int64_t latest_ns = 0;  // admitted at this time at the latest
    uint64_t last_tag = 0;  // of the previous request
    int64_t served_ns = 0;
    int lates = 0;  // late admissions in a row to a lane without capacity
    int64_t private_until_ns = 0;
    int64_t own_free_at_ns = 0;
  };

  int64_t AskPrivateBucket(LinkLane& lane, Direction direction, int64_t size_bytes, int64_t now_ns);
  void Admit(LinkLane& lane, Direction direction, int64_t size_bytes, int64_t now_ns,
             int64_t queued_ns);
  static void NoteLateness(Request& request, bool is_refused, int64_t now_ns);
  void Begin(Request& request, const LinkLane& lane, Direction direction, int64_t size_bytes,
             int64_t now_ns) const;
  struct Queue {
    int64_t before;
    uint64_t smallest_tag;
  };
  Queue Look(const LinkLane& lane, uint64_t tag, int64_t now_ns) const;
  bool Reserve(LinkLane& lane, Direction direction, int64_t size_bytes, int64_t now_ns,
               bool late) const;
  int64_t Wait(LinkLane& lane, const Request& request, int64_t wait_ns, int64_t now_ns) const;
  uint64_t Cost(int64_t size_bytes) const;
  uint32_t Weight() const;
  int64_t OwnTime(Direction direction, int64_t size_bytes) const;
  int64_t CopyTime(Direction direction, int64_t size_bytes) const;
  LinkLane& Lane(Direction direction) const { return lanes_.lanes[static_cast<size_t>(direction)]; }

  const LinkTerms& terms_;
  LinkLanes& lanes_;
  const uint32_t slot_;
  std::array<Request, kDirections> requests_ = {};
};

}  // namespace spillway::protocol
