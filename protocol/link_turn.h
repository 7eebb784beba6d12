// Whose turn it is on the link: asked by a process before each copy, answered from shared memory,
// without a message.
//
// Called under the lock of whoever copies; one request per direction at a time. Does not own the
// memory it looks at.
//
// Note [A bucket with a queue]
// Each direction is one token bucket for all: `free_at_ns` says when everything admitted so far
// will have been copied, and a copy is admitted while that is at most `ahead_ns` away, which moves
// it on. So the sum never exceeds the link's rate by more than that much and one copy, and an idle
// link admits whoever comes. Among those who wait the smallest tag goes first: a request's tag is
// that of its predecessor, or what the lane has reached if it comes later, and its bytes over its
// process's weight (self-clocked fair queueing, Golestani 1994). But nobody's turn leaves the link
// idle: when less than half of `ahead_ns` is left to copy, whoever asks goes, and whose turn it was
// is the more ahead of the others afterwards. A place in the queue is good for a moment beyond the
// time at which its owner said that it would ask again; after that it is nobody's.
//
// Note [Who is not let in goes alone]
// A lane that again and again has no room when a process's bound is over is written by somebody who
// does not keep the rules. That process then takes what its weight alone allows, from a bucket of
// its own, and looks at the lane again a second later.
//
// Invariants
//  1. Processes that always want to copy get bytes in proportion to their weights, to within one
//  copy each.
//  2. The wait for a copy is bounded by what the process's weight alone would make it, whatever
//  stands in the shared memory.
#pragma once

#include "protocol/link_page.h"

namespace spillway::protocol {

// A lane that says that it will not be free until later than this was scribbled on.
int64_t BelievableUntil(const LinkTerms& terms, Direction direction, int64_t now_ns);

class LinkTurn {
 public:
  // Larger copies are asked for piece by piece, so that the others' waits stay short.
  static constexpr int64_t kMostBytes = int64_t{32} << 20;

  LinkTurn(const LinkTerms& terms, LinkLanes& lanes, uint32_t slot)
      : terms_(terms), lanes_(lanes), slot_(slot) {}

  // 0: copy now; it is counted. Otherwise the time after which to ask again for the same copy.
  int64_t Ask(Direction direction, int64_t size_bytes, int64_t now_ns);
  // The copy that was asked for is not wanted any more.
  void Withdraw(Direction direction);

 private:
  struct Request {
    bool waits = false;
    uint64_t tag = 0;       // of this request
    int64_t latest_ns = 0;  // admitted then, whatever the lane says
    uint64_t last_tag = 0;  // of the one before
    int64_t served_ns = 0;  // when that was copied
    int lates = 0;          // in a row for which the lane had no room although it had to
    int64_t alone_until_ns = 0;
    int64_t own_free_at_ns = 0;  // the bucket of who goes alone
  };

  int64_t AskAlone(LinkLane& lane, Direction direction, int64_t size_bytes, int64_t now_ns);
  void Admit(LinkLane& lane, Direction direction, int64_t size_bytes, int64_t now_ns,
             int64_t queued_ns);
  static void NoteLateness(Request& request, bool is_refused, int64_t now_ns);
  void Begin(Request& request, const LinkLane& lane, Direction direction, int64_t size_bytes,
             int64_t now_ns) const;
  struct Queue {
    int64_t before;         // how many go first
    uint64_t smallest_tag;  // of all who wait
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
