// Ranges' bytes in host memory: the buffers, and the copies there and back on two streams of ours.
//
// Called by residency's classes with the state lock held. Owns the pinned host pool, what
// lies in the job's file, the copy streams and the job's place at the link. Counts and traces each
// copy.
//
// Invariants
//  1. A copy out begins after all work enqueued on the range. All later users of a range that was
//     copied in wait for that copy: it is alone in ready_after.
//  2. A host copy is valid from the completion of its copy until the next touch that may write the
//     range (Range::host_valid). Whether it is good is another question (Note [Good host copies]).
// Never: waits, or changes where a range is.
#pragma once

#include "interposer/execute/residency/link_turns.h"
#include "interposer/execute/residency/range_table.h"
#include "interposer/execute/residency/spilled_copies.h"
#include "interposer/execute/state/counters.h"
#include "interposer/execute/state/host_pool.h"
#include "interposer/execute/state/range.h"
#include "interposer/execute/state/timeline.h"
#include "interposer/record/job_trace.h"

namespace spillway::interposer {

class HostCopies {
 public:
  HostCopies(int device, size_t limit_bytes, bool may_map, Timeline* timeline, Counters* counters,
             JobTrace* trace);

  // Into and from the range's buffer. False when the driver refused: nothing has changed. Bytes in
  // the job's file are read first, with the state lock held: Spilling::Load does so without it.
  bool Out(Range* range, TraceCause why);
  bool In(Range* range, TraceCause why);
  bool InBehind(Range* range, Use use, TraceCause why);
  // A copy between device and host outside any range's life, on the stream of copies out.
  Use OnOwnStream(const CUDA_MEMCPY2D& copy);
  Use LastRestore() const { return {to_device_, Timeline::IssuedOn(to_device_)}; }
  bool IsRestore(Use use) const { return use.stream == to_device_; }

  // Gives the buffer back. A copy may still use it: its next owner waits for that copy.
  void Give(Range* range);
  // Gives up good copies of resident ranges while the pool is beyond its limit.
  void GiveUpSpare(const RangeTable& ranges);
  // Gives up all of them, and what they leave free. Returns how many bytes.
  size_t ReleaseSpare(const RangeTable& ranges);
  // Of ranges on the device, with a host copy.
  static size_t ResidentTwiceBytes(const RangeTable& ranges);
  // Moves the bytes to memory that can be mapped at device addresses: slabs of the agent cannot.
  bool MakeMappable(Range* range);
  // The range can be evicted without a copy.
  bool IsGood(const Range* range) const;

  // The context's own error once a fault has ended it. Does not wait.
  CUresult Health() const;

  HostPool& pool() { return pool_; }
  SpilledCopies& spilled() { return spilled_; }
  const SpilledCopies& spilled() const { return spilled_; }
  // Asked before each copy begins. Copies are counted there.
  LinkTurns& link() { return link_; }

 private:
  std::uint64_t CountUndocumented();

  Timeline* const timeline_;
  Counters* const counters_;
  JobTrace* const trace_;
  StreamState* to_host_;  // of streams_: own non-blocking ones
  StreamState* to_device_;
  CUstream streams_[2] = {};
  HostPool pool_;
  SpilledCopies spilled_;
  LinkTurns link_;
};

}  // namespace spillway::interposer
