// Proves whether an operation makes the same bytes again: repeats its launch over its own output
// and compares. (Note [Recompute records] in recompute_record.h)
//
// Called on the thread of a library's call when that call has ended. Owns nothing beyond a proof.
//
// Invariants
//  1. No call can use the output during a proof. An output that differs gets its first bytes back.
//  2. A record outlives its call only if its operation is proved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/effect_learning.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/recompute_recording.h"
#include "interposer/execute/replay_checks.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/scratch_memory.h"
#include "interposer/execute/state/recompute_record.h"
#include "interposer/execute/waits.h"

namespace spillway::interposer {

class RepeatProofs {
 public:
  RepeatProofs(JobState& state, Waits& waits, DeferredFrees& frees, ScratchMemory& scratch,
               RecomputeRecording& records, Replays& replays, ReplayChecks& checks,
               EffectLearning& learning)
      : state_(state),
        waits_(waits),
        frees_(frees),
        scratch_(scratch),
        records_(records),
        replays_(replays),
        checks_(checks),
        learning_(learning) {}

  // The library's call has ended, and all its work is enqueued. Or a learned launch has;
  // `experiment` if it is to be repeated.
  void CallEnded(const LibraryCall& call, Experiment* experiment = nullptr)
      SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // No record of the launch began.
  void EndUnmade(Experiment* experiment) SPILLWAY_EXCLUDES(kStateLock);
  // Whether an operation of this token (scheduler::TokenOf) is proved repeatable, and may be
  // repeated: plans count on that.
  bool MayReplay(std::uint64_t token) SPILLWAY_EXCLUDES(kStateLock);
  // For tests, before the first allocation: whatever can be recomputed is dropped at once, and
  // nothing is insured.
  void DropEagerly() SPILLWAY_EXCLUDES(kStateLock) {
    state_.drops_eagerly = true;
    InsureFirst(0);
  }
  // Before the first drop: the first so many of a learned operation keep a host copy.
  void InsureFirst(unsigned drops) SPILLWAY_EXCLUDES(kStateLock);

 private:
  struct Proof;
  struct OutputPiece {
    size_t offset = 0;
    size_t bytes = 0;
  };
  enum class Toward : bool { kHost, kDevice };
  void ForgetAfterCall(const RecomputeRecord* record) SPILLWAY_REQUIRES(kStateLock);
  void DropAll(Use last) SPILLWAY_EXCLUDES(kStateLock);
  bool IsOver(const LibraryCall& call, Experiment* experiment, bool* is_proved)
      SPILLWAY_EXCLUDES(kStateLock);
  void Prove(std::uint64_t id, Experiment* experiment) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  bool MayRepeat(const Proof& proof) SPILLWAY_EXCLUDES(kStateLock);
  bool Repeat(Proof* proof) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  bool BeginProof(std::uint64_t id, Proof* proof) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);
  bool RunTwice(Proof* proof) SPILLWAY_REQUIRES(kMakingLock) SPILLWAY_EXCLUDES(kStateLock);
  bool AwaitFirst(Use use, std::uint64_t id) SPILLWAY_EXCLUDES(kStateLock);
  static Experiment::Repetition OutcomeOf(const Proof& proof, bool is_complete);
  void EndProof(Proof* proof, bool is_complete) SPILLWAY_REQUIRES(kMakingLock)
      SPILLWAY_EXCLUDES(kStateLock);
  static std::vector<OutputPiece> OutputPiecesOf(const Range& range);
  bool KeepFirst(Proof* proof) SPILLWAY_EXCLUDES(kStateLock);
  bool CompareSecond(Proof* proof) SPILLWAY_EXCLUDES(kStateLock);
  bool PutBack(const Proof& proof) SPILLWAY_EXCLUDES(kStateLock);
  void NoteLost(const Proof& proof) SPILLWAY_EXCLUDES(kStateLock);
  bool CopyPiece(const Proof& proof, OutputPiece piece, Toward toward)
      SPILLWAY_EXCLUDES(kStateLock);

  JobState& state_;
  Waits& waits_;
  DeferredFrees& frees_;
  ScratchMemory& scratch_;
  RecomputeRecording& records_;
  Replays& replays_;
  ReplayChecks& checks_;
  EffectLearning& learning_;
};

}  // namespace spillway::interposer
