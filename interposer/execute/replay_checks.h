// Compares what a replay made with the fingerprint of what was dropped, and looks whether it
// changed anything else. For launches of which only experiments say what they do.
// (Note [Learned effects] in state/launch_effects.h)
//
// Called by Replays with the state lock held, IsWrong by hooks on any thread. Owns what is being
// compared.
//
// Invariants
//  1. A replay that made other bytes, or changed what it was only to read, is known when its work
//  is
//     complete (IsWrong). Nothing that the program then receives may be used.
// Never: waits.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "interposer/execute/job_state.h"
#include "interposer/execute/presumed_reads.h"

namespace spillway::interposer {

class ReplayChecks {
 public:
  ReplayChecks(JobState& state, PresumedReads& presumed) : state_(state), presumed_(presumed) {}

  // Around a replay on the stream; End only after Begin and an accepted launch. False: there is no
  // way to check it. Then it must not be made, or its result counts as wrong.
  bool Begin(const RecomputeRecord& record, StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  void End(const RecomputeRecord& record, StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  // The replay, with its checks, has its place in the stream.
  void Ended(RecomputeRecord* record, Use use) SPILLWAY_REQUIRES(kStateLock);
  // It was not made.
  void NotMade(StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  // Work that compares.
  UseList UnderWay() const SPILLWAY_REQUIRES(kStateLock);
  // What is known to be wrong without a comparison.
  void NoteWrong(CUfunction function) SPILLWAY_REQUIRES(kStateLock);

  // Any thread, without a lock: whether a completed replay was wrong. It stays so.
  bool IsWrong() const;
  // The kernel's name, for the message.
  std::string NameOfWrong() SPILLWAY_EXCLUDES(kStateLock);

 private:
  struct Check {
    CUfunction function = nullptr;
    std::vector<Fingerprints::Slot> slots;               // of what it was to read; given back later
    Fingerprints::Slot output = ContentChecks::kNoSlot;  // the record's
    Fingerprints::Slot made = ContentChecks::kNoSlot;    // insured: both are given back later
    std::uint64_t token = 0;
    Use use;
  };
  void ForgetDone() SPILLWAY_REQUIRES(kStateLock);
  void Forget(const Check& done) SPILLWAY_REQUIRES(kStateLock);
  void JudgeInsured(const Check& done) SPILLWAY_REQUIRES(kStateLock);
  bool AnyDiffers(const Check& check) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  PresumedReads& presumed_;
  std::atomic<const ContentChecks*> in_use_{nullptr};  // from the first check on
  std::atomic<bool> could_not_check_{false};
  std::vector<Fingerprints::Piece> now_ SPILLWAY_GUARDED_BY(kStateLock);  // of the replay under way
  std::deque<Check> checks_ SPILLWAY_GUARDED_BY(kStateLock);
  CUfunction wrong_ SPILLWAY_GUARDED_BY(kStateLock) = nullptr;
};

}  // namespace spillway::interposer
