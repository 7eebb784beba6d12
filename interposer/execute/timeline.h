// What has been enqueued on each stream and how much of it is known to be complete.
//
// Called by hooks and residency with the state lock held. Owns the events it records; stream handles are the
// application's (or execute's own copy streams).
//
// Every operation that touches managed memory gets a sequence number on its stream, given out after the driver
// accepted it. An event recorded on the stream at number n is a checkpoint: when it completes, so has all up to n.
//
// Invariants
//  1. Done(use) is true only when the device has completed that operation (or it never will touch memory again).
//  2. A stream's numbers only grow, also when its slot serves a new stream after the old one was destroyed: a Use is
//     valid for ever.
//  3. Work on a per-thread default stream is checkpointed at once: no other thread could record on it later.
// Never: waits for the device (residency waits, on events it gets here).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

// A stream as a call names it; `per_thread` calls (the _ptsz and _ptds twins) mean another default stream.
struct StreamName {
  CUstream handle = nullptr;
  bool per_thread = false;
};

struct StreamState;

struct Use {
  StreamState* stream = nullptr;
  std::uint64_t sequence = 0;
};

// The latest use per stream; few streams touch one allocation.
class UseList {
 public:
  void Add(Use use);
  void Merge(const UseList& other);
  void Clear() { uses_.clear(); }
  bool empty() const { return uses_.empty(); }
  const std::vector<Use>& items() const { return uses_; }
  std::vector<Use>& items() { return uses_; }

 private:
  std::vector<Use> uses_;
};

class Timeline {
 public:
  explicit Timeline(CUcontext context = nullptr);  // the job's
  ~Timeline();

  // The stream's state, made at first sight.
  StreamState* Of(StreamName name);
  CUstream HandleOf(const StreamState* stream) const;
  // Tells one stream from all others, also from a later one in the same slot.
  std::uint64_t SerialOf(const StreamState* stream) const;

  // A new operation was enqueued on the stream.
  Use Issue(StreamState* stream);
  // All work enqueued so far on every stream and not known to be complete.
  UseList Unfinished();
  UseList UnfinishedOn(StreamState* stream);

  bool Done(Use use);
  bool AllDone(UseList* uses);  // forgets those that are done
  // Makes the stream's next operation wait, on the device, for `use`.
  void OrderAfter(StreamState* stream, Use use);
  // An event whose completion implies the use's; null when the stream cannot be recorded on (another
  // context's, or its context is beyond use): then wait for the stream.
  CUevent EventFor(Use use);

  // A synchronising call covered everything that was issued when it began.
  std::uint64_t IssuedOn(const StreamState* stream) const;
  void Completed(StreamState* stream, std::uint64_t sequence);
  std::vector<Use> IssuedIn(CUcontext context) const;

  void Destroyed(CUstream handle);
  // Before a stream captures (nothing can be recorded then) or waits for the program (nothing recorded behind the wait
  // may be awaited): its work so far gets an event of its own.
  void TakeCheckpoint(StreamState* stream);
  // Record a checkpoint every `interval` operations (0: only when asked for).
  void set_checkpoint_interval(std::uint64_t interval) { checkpoint_interval_ = interval; }
  void Reset();

 private:
  // What tells streams apart: default streams have one handle in all contexts and threads.
  struct Key {
    CUstream handle = nullptr;
    CUcontext context = nullptr;  // of a default stream
    std::uint64_t thread = 0;     // of a per-thread default stream
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  Key KeyOf(StreamName name) const;
  CUcontext OwnerOf(const Key& key) const;
  CUevent Record(StreamState* stream);
  void Poll(StreamState* stream);
  void Recycle(StreamState* stream);
  StreamState* NewState();

  const CUcontext context_;
  std::unordered_map<Key, StreamState*, KeyHash> by_key_;
  std::vector<std::unique_ptr<StreamState>> states_;
  std::vector<StreamState*> idle_states_;
  std::vector<StreamState*> dying_;
  std::vector<CUevent> free_events_;
  std::uint64_t last_serial_ = 0;
  std::uint64_t checkpoint_interval_ = 0;
  Key last_key_;  // one-entry cache of by_key_
  StreamState* last_state_ = nullptr;
};

}  // namespace spillway::interposer
