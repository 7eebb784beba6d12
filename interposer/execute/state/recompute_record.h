// How a range is recomputed: the launch that made its bytes, and what that launch reads.
//
// Note [Recompute records]
// Addresses never change, so an operation is repeated by repeating its launch: the same function,
// dimensions and parameters. That is allowed for a launch which
//  - is the only work of a cuDNN or cuBLAS call that is documented as deterministic;
//  - overwrites one range whole, and otherwise only reads and clobbers (ledger/claims.h);
//  - has been proved: once for each shape (record/operation_shape.h) it was run twice, and the
//    bytes were compared.
// What the launch clobbers (statistics, a workspace) is replaced by scratch memory in a replay: the
// parameter words that lead there are exchanged. By then the program may have freed its workspace
// and given its addresses to others.
//
// A record holds as long as nothing can have written what it reads or makes. So from before its
// launch on, all calls that name any of that take the lock: their fast paths stay closed. A call
// that may write any of it ends the record. If the bytes are nowhere else, they are recomputed
// first. Of a small input the old bytes are saved instead, and the record reads these. The same
// holds for anything that may use memory without naming it.
//
// A free of an input waits until the range is recomputed or freed. So a program that frees all of
// them together recomputes nothing. The next large allocation or charge recomputes what frees still
// wait for. A range that the plan recomputes before its next use waits while there is room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/state/launch_call.h"
#include "interposer/execute/state/range.h"
#include "interposer/ledger/claims.h"
#include "interposer/record/operation_shape.h"

namespace spillway::interposer {

class JobMemory;

// From its hook's beginning to its end, on that thread.
struct LibraryCall {
  Claims* claims = nullptr;
  int works = 0;                        // that name memory
  JobMemory* job = nullptr;             // to be notified when the call has ended
  std::uint64_t record = 0;             // begun for its first launch
  std::size_t lacks_scratch_bytes = 0;  // for what it clobbers
};

class RecordedLaunch {
 public:
  // Nothing when its attributes are more than numbers. Stale bytes become zero.
  static std::optional<RecordedLaunch> Of(const LaunchCall& call);

  // Words that point to `begin` now point to `to`. False when a word points elsewhere into the
  // bytes, as it may be a number. False when a tensor map does. Then the launch must not be used.
  bool Move(CUdeviceptr begin, CUdeviceptr end, CUdeviceptr to);
  bool LeadsInto(CUdeviceptr begin, CUdeviceptr end) const;
  bool AnyWord(base::FunctionRef<bool(CUdeviceptr)> accepts) const;
  CUresult LaunchOn(CUstream stream);
  CUfunction function() const { return function_; }

 private:
  CUresult LaunchAsAllowedOn(CUstream stream);
  CUresult AllowSharedMemory(int bytes) const;
  bool IsMapped(CUdeviceptr begin,
                CUdeviceptr end) const;  // a tensor map among the parameters points there
  template <class Visit>
  void ForEachWord(Visit visit) const;

  CUfunction function_ = nullptr;
  LaunchDimensions dimensions_{};
  std::vector<unsigned char> bytes_;
  struct Parameter {
    std::size_t offset, bytes;
  };
  std::vector<Parameter> parameters_;
  std::vector<CUlaunchAttribute> attributes_;
  bool is_extended_ = false;
};

// What must be recomputed before a call may be made.
struct ToRecompute {
  Range* range = nullptr;
  SlabBlock* small_input = nullptr;  // an input that the call may write; null otherwise
};

inline bool IsDropped(const Range* range) { return range->place == Place::kDropped; }

struct RecomputeRecord {
  enum class State : std::uint8_t {
    kBegun,  // its launch was not made yet
    kMade,   // its call is in progress
    kLive,
  };
  RecordedLaunch launch;
  Range* output = nullptr;
  base::InlineVector<Tracked*, 6> inputs;  // each once
  std::uint64_t token = 0;                 // scheduler::TokenOf
  bool is_kept = false;                    // beyond its proof
  // Experiments alone say what its launch does: each replay is checked (replay_checks.h).
  bool is_checked = false;
  bool is_insured = false;  // when dropped: its output has a host copy, which replaces what is made
  bool is_outdated = false;      // a presumed read was none: it is never dropped again
  bool reads_constants = false;  // perhaps: it holds until the program writes constants
  // Its output had no content and was filled before its launch, and is so before a replay: the
  // launch may leave a part as it was.
  bool is_filled = false;
  std::uint32_t print = ~std::uint32_t{0};  // when dropped: the slot of its output's fingerprint
  Use printed;                              // the last work that uses the slot
  // While it is dropped or about to be: fingerprints of its memory, now and from before a presumed
  // read. They must be equal.
  struct Compared {
    std::uint32_t now, before;
  };
  base::InlineVector<Compared, 4> compared;
  bool clobbers = false;  // a replay needs the scratch memory for itself
  std::uint64_t id = 0;
  State state = State::kBegun;
  Use made_by;
  bool drop_is_due = false;  // a plan drops it once its call has ended
};

// Before the launch and before each replay. True when there is nothing to fill.
bool FillOutput(const RecomputeRecord& record, const StreamState* stream);

}  // namespace spillway::interposer
