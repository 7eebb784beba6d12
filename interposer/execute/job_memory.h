// The memory of this job on one device, behind one entry point. Wires the classes that allocate,
// free, and make memory resident around calls.
//
// One per device, made at the first allocation on it (runtime.h), never destroyed. Owns the job's
// state (job_state.h) and the classes that work on it. A class calls only those made before it
// here; README.md has the map.
#pragma once

#include "interposer/execute/allocations.h"
#include "interposer/execute/arenas.h"
#include "interposer/execute/call_memory.h"
#include "interposer/execute/call_recorder.h"
#include "interposer/execute/charges.h"
#include "interposer/execute/deferred_frees.h"
#include "interposer/execute/effect_learning.h"
#include "interposer/execute/eviction.h"
#include "interposer/execute/free_waits.h"
#include "interposer/execute/grants.h"
#include "interposer/execute/held_ranges.h"
#include "interposer/execute/input_copies.h"
#include "interposer/execute/job_calls.h"
#include "interposer/execute/job_state.h"
#include "interposer/execute/job_view.h"
#include "interposer/execute/launch_path.h"
#include "interposer/execute/locked_calls.h"
#include "interposer/execute/look_ahead.h"
#include "interposer/execute/memory_scan.h"
#include "interposer/execute/own_memory.h"
#include "interposer/execute/parking.h"
#include "interposer/execute/plan_follower.h"
#include "interposer/execute/post_launch_scan.h"
#include "interposer/execute/presumed_reads.h"
#include "interposer/execute/program_streams.h"
#include "interposer/execute/recompute_recording.h"
#include "interposer/execute/repeat_proofs.h"
#include "interposer/execute/replay_checks.h"
#include "interposer/execute/replays.h"
#include "interposer/execute/restores.h"
#include "interposer/execute/runs.h"
#include "interposer/execute/scratch_memory.h"
#include "interposer/execute/sharing.h"
#include "interposer/execute/spilling.h"
#include "interposer/execute/stored_addresses.h"
#include "interposer/execute/waits.h"
#include "interposer/execute/workspaces.h"

namespace spillway::interposer {

class JobMemory {
 public:
  JobMemory(CUcontext context, int device, size_t budget_bytes, size_t host_limit_bytes,
            ParkChoice park, LearnChoice learn = LearnChoice::kOff);

  CUcontext context() const { return state_.context; }
  int device() const { return state_.device; }
  // A word outside is no address of ours.
  WordBounds Bounds() const { return state_.Bounds(); }

  Allocations& allocations() { return allocations_; }
  Charges& charges() { return charges_; }
  FreeWaits& free_waits() { return free_waits_; }
  JobCalls& calls() { return calls_; }
  ProgramStreams& streams() { return streams_; }
  StoredAddresses& stored_addresses() { return stored_; }
  PostLaunchScan& post_launch_scan() { return post_scan_; }
  Replays& replays() { return replays_; }
  RepeatProofs& proofs() { return proofs_; }
  EffectLearning& learning() { return learning_; }
  HeldRanges& held_ranges() { return held_; }
  Sharing& sharing() { return sharing_; }
  OwnMemory& own_memory() { return own_memory_; }
  Grants& grants() { return grants_; }
  PlanFollower& plan() { return plan_; }
  CallRecorder& recording() { return recording_; }
  Spilling& spilling() { return spilling_; }
  JobView& view() { return view_; }

  void ReleaseAll();

 private:
  JobState state_;
  Waits waits_{state_};
  CallRecorder recording_{state_};
  StoredAddresses stored_{state_};
  Runs runs_{state_};
  Arenas arenas_{state_};
  MemoryScan scan_{state_, waits_, stored_};
  Parking parking_;
  Eviction eviction_{state_, waits_, parking_};
  Spilling spilling_{state_};
  Restores restores_{state_, waits_, parking_, eviction_, spilling_};
  LookAhead look_ahead_{state_, parking_, eviction_, restores_};
  DeferredFrees frees_{state_};
  ScratchMemory scratch_{state_, parking_, eviction_};
  PresumedReads presumed_{state_, frees_};
  RecomputeRecording records_{state_, frees_, scratch_, presumed_, this};
  ReplayChecks replay_checks_{state_, presumed_};
  Replays replays_{state_, waits_,   parking_,  eviction_,     restores_,
                   frees_, scratch_, presumed_, replay_checks_};
  InputCopies input_copies_{state_, eviction_, frees_, replays_, presumed_};
  EffectLearning learning_{state_, stored_, parking_, eviction_, replay_checks_};
  RepeatProofs proofs_{state_,   waits_,   frees_,         scratch_,
                       records_, replays_, replay_checks_, learning_};
  PlanFollower plan_{state_, records_, replays_};
  CallMemory call_memory_{state_, stored_, runs_, arenas_};
  PostLaunchScan post_scan_{state_, waits_, stored_, scan_, parking_, replays_};
  Workspaces workspaces_{state_};
  Grants grants_{state_, recording_, runs_, parking_, eviction_};
  LaunchPath launch_path_{state_};
  LockedCalls locked_calls_{state_,      waits_,       parking_,   restores_,
                            look_ahead_, replays_,     presumed_,  input_copies_,
                            plan_,       call_memory_, post_scan_, workspaces_};
  JobCalls calls_{state_,   recording_,   stored_,       parking_,   presumed_,
                  records_, proofs_,      learning_,     plan_,      post_scan_,
                  grants_,  launch_path_, locked_calls_, workspaces_};
  FreeWaits free_waits_{state_, waits_};
  Allocations allocations_{state_,    recording_, arenas_,  parking_,   eviction_,
                           restores_, frees_,     replays_, free_waits_};
  Charges charges_{state_, parking_, eviction_, replays_, allocations_};
  HeldRanges held_{state_};
  Sharing sharing_{state_, restores_, replays_, held_, calls_};
  OwnMemory own_memory_{state_, waits_,   runs_,        parking_, restores_,
                        frees_, replays_, allocations_, held_};
  JobView view_{state_, waits_, frees_, replay_checks_, plan_, spilling_};
  ProgramStreams streams_{state_, eviction_};
};

}  // namespace spillway::interposer
