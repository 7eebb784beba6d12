// Learns what launches of undocumented kernels do, by experiments around the program's own
// launches, and says what a launch is expected to do. (Note [Learned effects] in
// state/launch_effects.h)
//
// Called by JobCalls around launches on the program's threads, while the job is recorded. Owns the
// experiments under way; what they show is in LaunchEffects. Results are read when the device has
// passed them: nothing waits.
//
// Invariants
//  1. A launch is repeated only if it changed nothing but memory without content itself, just
//     before (ChangedOnlyOutputs). RepeatProofs keeps what it made, and puts it back if the
//     repetition made anything else.
//  2. No launch is repeated that names memory whose other users are unknown.
//  3. If a repetition changes anything else all the same, the program is stopped (replay_checks.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "interposer/execute/eviction.h"
#include "interposer/execute/experiment.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/launch_kind.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/recompute_recording.h"
#include "interposer/execute/replay_checks.h"
#include "interposer/execute/stored_addresses.h"
#include "interposer/execute/touch_set.h"
#include "scheduler/learn/iteration_pattern.h"

namespace spillway::interposer {

class EffectLearning {
 public:
  EffectLearning(JobState& state, StoredAddresses& stored, Parking& parking, Eviction& eviction,
                 ReplayChecks& checks)
      : state_(state), stored_(stored), parking_(parking), eviction_(eviction), checks_(checks) {}

  // Before the first allocation: experiments are made, and kernels without documents may run more
  // often than the program says. Otherwise nothing is learned.
  void AllowRepeats() { state_.repeats_kernels = true; }
  // Takes memory for fingerprints, once, where the launch is one to learn of. No call of this
  // thread is in progress.
  void Prepare(const TouchSet& set) SPILLWAY_EXCLUDES(kMakingLock, kStateLock);
  // Before a launch without documents: its claims, if something is known (TouchSet::learned).
  void Expect(const Addresses& addresses, StreamName stream, TouchSet* set)
      SPILLWAY_EXCLUDES(kStateLock);

  // Whether work that reads device variables may be under way.
  bool ReadVariables() SPILLWAY_EXCLUDES(kStateLock);
  // Functions are about to be unloaded.
  void ForgetKinds() SPILLWAY_EXCLUDES(kStateLock);
  // The roles of an operation's touches, for plans; empty: unknown.
  scheduler::TouchRoles RolesOf(std::uint64_t token) SPILLWAY_EXCLUDES(kStateLock);

  // Around the launch, with all its memory in place: an experiment, if its kind needs one.
  void Begin(const Addresses& addresses, TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  void AfterLaunch(TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  // The launch has its place in the stream.
  void End(TouchSet* set) SPILLWAY_EXCLUDES(kStateLock);
  // The program's launch is complete: whether it changed nothing but what it fills.
  bool ChangedOnlyOutputs(const Experiment& experiment) SPILLWAY_REQUIRES(kStateLock);
  // Fills the output for the repetition; the stream is behind the program's launch.
  static bool FillForRepetition(const Range& output, const StreamState* stream);
  // Behind the repeated launch, on its stream.
  void AfterRepetition(Experiment* experiment, StreamState* stream) SPILLWAY_REQUIRES(kStateLock);
  // That work is complete, or the launch was not repeated. Afterwards the experiment may be gone.
  void EndRepetition(Experiment* experiment, Experiment::Repetition outcome)
      SPILLWAY_REQUIRES(kStateLock);

 private:
  using Effect = LaunchEffects::Effect;
  static void AddClaims(const NamedMemory& memory, const LearnedRoles& roles, Claims* claims);
  bool IsQuiet(const TouchSet& set) SPILLWAY_REQUIRES(kStateLock);
  bool AddPieces(const NamedMemory& memory, Experiment* experiment) SPILLWAY_REQUIRES(kStateLock);
  bool MayRepeat(Effect* effect, const Experiment& experiment, const TouchSet& set)
      SPILLWAY_REQUIRES(kStateLock);
  bool TakePrints(Experiment* experiment, Experiment::Moment moment, const StreamState* stream)
      SPILLWAY_REQUIRES(kStateLock);
  void Collect() SPILLWAY_REQUIRES(kStateLock);
  void Evaluate(const Experiment& experiment) SPILLWAY_REQUIRES(kStateLock);
  void JudgeToken(std::uint64_t token) SPILLWAY_REQUIRES(kStateLock);
  void NoteObserved(const Experiment& experiment, Effect* effect) SPILLWAY_REQUIRES(kStateLock);
  void NoteRepeated(const Experiment& experiment, Effect* effect) SPILLWAY_REQUIRES(kStateLock);
  void TraceResult(const Experiment& experiment, ExperimentResult result)
      SPILLWAY_REQUIRES(kStateLock);
  bool InputsAre(const Experiment& experiment, Experiment::Moment one, Experiment::Moment other)
      SPILLWAY_REQUIRES(kStateLock);
  bool IsSame(const Experiment::Piece& piece, Experiment::Moment one, Experiment::Moment other)
      SPILLWAY_REQUIRES(kStateLock);
  void GiveSlots(const Experiment& experiment, Use use) SPILLWAY_REQUIRES(kStateLock);
  std::uint64_t IssuedByOthers(const StreamState* stream) SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  StoredAddresses& stored_;
  Parking& parking_;
  Eviction& eviction_;
  ReplayChecks& checks_;
  std::deque<std::unique_ptr<Experiment>> under_way_ SPILLWAY_GUARDED_BY(kStateLock);
};

}  // namespace spillway::interposer
