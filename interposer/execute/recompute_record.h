// How the bytes of a range are made again: the launch that made them, word for word, and what it
// reads.
//
// Filled in by RecomputeRecording in the thread of the call, kept by RecomputeRecords.
//
// Note [Recompute records]
// Addresses never change, so an operation is run again by making its launch again: the same
// function, dimensions and parameters. That is allowed for a launch which
//  - a call of cuDNN or cuBLAS makes as its only work, of a function that is deterministic by its
//  documentation;
//  - overwrites one range whole, and names besides only what it reads and what it clobbers
//  (ledger/claims.h);
//  - has been proved: once for each shape (record/operation_shape.h) it was run twice, and the
//  bytes were compared.
// What it clobbers (statistics, a workspace of any size) goes to scratch memory when it is made
// again: the words of its parameters that lead there are exchanged. The program may have freed its
// workspace by then, and given its addresses to others.
//
// A record holds as long as nobody may have written what it reads or what it makes. So from before
// its launch on all calls that name any of that take the lock (their fast paths stay closed), and a
// call that may write it ends the record; where the range's bytes are nowhere but in the record,
// they are made first. Of a small input the former bytes are saved instead, and the record reads
// these. The same goes for whatever may use memory without naming it. A free of what it reads waits
// until the range is made or freed, too: a program that frees all together makes nothing for that.
// The next large allocation, or charge, makes what frees still wait for; but of what the plan makes
// again before its next use it waits for that, as long as there is room.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/inline_vector.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/execute/range.h"
#include "interposer/ledger/claims.h"
#include "interposer/record/operation_shape.h"

namespace spillway::interposer {

class JobMemory;

// A launch as its hook was given it; lives on the caller's stack.
struct LaunchCall {
  CUfunction function = nullptr;
  LaunchDimensions dimensions{};
  void** parameters = nullptr;
  std::span<const std::uint32_t> parameter_bytes = {};
  const CUlaunchConfig* config = nullptr;  // of an extended launch
};

// A call of a library, from its hook's beginning to its end, on that thread.
struct LibraryCall {
  Claims* claims = nullptr;
  int works = 0;                        // driver calls of it so far that name memory
  JobMemory* job = nullptr;             // who is to be told when it has ended
  std::uint64_t record = 0;             // begun for its first launch
  std::size_t lacks_scratch_bytes = 0;  // for what it clobbers
};

// A launch that can be made again.
class RecordedLaunch {
 public:
  // Nothing where it has attributes that are more than numbers.
  static std::optional<RecordedLaunch> Of(const LaunchCall& call);

  // Words that lead to the beginning of these bytes lead to `to`. False where one leads elsewhere
  // into them, which may be a number, and where a tensor map does: nothing may be made of these.
  bool Move(CUdeviceptr begin, CUdeviceptr end, CUdeviceptr to);
  // Any word of its parameters does.
  bool LeadsInto(CUdeviceptr begin, CUdeviceptr end) const;
  // Whether `accepts` likes one of the words that may be an address.
  bool AnyWord(base::FunctionRef<bool(CUdeviceptr)> accepts) const;
  CUresult LaunchOn(CUstream stream);

 private:
  CUresult LaunchAsAllowedOn(CUstream stream);
  CUresult AllowSharedMemory(int bytes) const;
  bool IsMapped(CUdeviceptr begin,
                CUdeviceptr end) const;  // a tensor map among its parameters leads there
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

// What must be made before a call may be.
struct ToMake {
  Range* range = nullptr;            // null: nothing
  SlabBlock* small_input = nullptr;  // since the call may write this; null where it is not that
};

inline bool IsDropped(const Range* range) { return range->place == Place::kDropped; }

struct RecomputeRecord {
  enum class State : std::uint8_t {
    kBegun,  // its launch has not been made yet
    kMade,   // its call goes on
    kLive,
  };
  RecordedLaunch launch;
  Range* output = nullptr;
  base::InlineVector<Tracked*, 6> inputs;  // each once
  std::uint64_t token = 0;                 // of its operation (scheduler::TokenOf)
  bool is_kept = false;                    // beyond its proof
  bool clobbers = false;                   // made again it needs the scratch memory for itself
  // RecomputeRecords' own:
  std::uint64_t id = 0;
  State state = State::kBegun;
  Use made_by;               // the launch
  bool drop_is_due = false;  // a plan drops it behind its call, which goes on
};

}  // namespace spillway::interposer
