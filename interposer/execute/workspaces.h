// Which ranges are workspaces of library calls, and when their bytes mean nothing.
//
// Called by LockedCalls at the end of each launch or copy, and by the hooks of cuDNN and cuBLAS at
// the end of a library's call, on the program's threads. Keeps nothing: facts are in the ranges.
//
// Note [Idle workspaces]
// cuDNN documents a workspace as memory "needed to be able to execute". What later calls need is in
// the reserve space. So a workspace's bytes mean nothing between calls. Within a call they do: one
// launch leaves there what the next one reads. A range is an idle workspace from the end of such a
// call until another call names it. Then it is the first to leave, and leaves without a copy. It
// comes back as memory without content, like a new allocation.
//
// A range begins to be a workspace at a launch that uses all of it as scratch memory, while no
// unfinished work of another stream may use it, and no other call names it. So nothing enqueued
// earlier can still write bytes that mean something: such work may wait for the program, and run
// behind the launch. From then on its fast path is closed. A call that uses it for anything else,
// in any thread, makes it an ordinary range again. Jobs that never wanted more than their budget
// have no workspaces.
//
// Invariants
//  1. An idle workspace was last named by a library's call that used it as scratch memory alone. It
//     was so used as a whole since the last call that used it for anything else.
// Never: waits, or calls the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interposer/execute/job_state.h"
#include "interposer/execute/touch_set.h"

namespace spillway::interposer {

class Workspaces {
 public:
  explicit Workspaces(JobState& state) : state_(state) {}

  // Before the call is made, with its ranges on the device. `own_pins`: how often it has pinned
  // each.
  void Expect(const TouchSet& set, int own_pins) SPILLWAY_REQUIRES(kStateLock);
  // The call was made, or refused. Its range `index` is still as the call found it.
  void NoteUse(const TouchSet& set, std::size_t index) SPILLWAY_REQUIRES(kStateLock);
  // All launches of the library's call were made.
  void CallEnded(const Claims& claims) SPILLWAY_EXCLUDES(kStateLock);

 private:
  bool MayBegin(Range* range, const StreamState* stream, int own_pins)
      SPILLWAY_REQUIRES(kStateLock);
  void BecomeIdle(Range* range) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  // Of the calls that have a range as scratch_call, the last: others take no lock at their end.
  std::atomic<std::uint64_t> last_call_{0};
};

}  // namespace spillway::interposer
