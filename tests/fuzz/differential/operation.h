// One step of a random CUDA program as plain data.
//
// Threads: plain values. Ownership: none; objects have numbers that a program never reuses, so an
// operation means the same whichever others are left out.
//
// Invariants
//  1. `origin` is the operation's position in the generated list, kept by everything derived
//     from it (a wait that the orderer inserts carries the origin of the operation that needs
//     it).
//  2. All that is random about an operation's details follows from its own `salt`.
//  3. `thread` is a thread as the program sees it: a host thread with one of its contexts
//     current (shape.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::fuzz {

enum class Kind : std::uint8_t {
  kStreamCreate,
  kStreamDestroy,
  kEventRecord,
  kEventWait,  // cuStreamWaitEvent
  kEventSync,
  kStreamSync,
  kContextSync,
  kAlloc,
  kFree,
  kKernel,
  kCopy,
  kFill,          // memset
  kHostFunction,  // writes a pinned buffer in stream order
  kHostFill,      // the host writes one of its buffers
  kHostFold,      // the host reads one of its buffers into the digest
  kInspect,       // address range and pointer attributes of a device pointer, into the digest
  kMemInfo,
  kRefusals,  // calls that must fail, whatever the budget; their results go into the digest
  kPoolCreate,
  kPoolTrim,
  kPoolDestroy,
  kGive,         // hands a buffer to another thread behind an event ...
  kTake,         // ... which that thread awaits
  kFeatureCall,  // a feature's call on the host, which is complete when it returns (feature.h)
  kFeatureWork,  // a feature's work on a stream
  kFreeBarrier,  // allocates something and frees it: whoever has one waits so for all that the host
                 // needs
};

enum class AllocForm : std::uint8_t {
  kMemAlloc,
  kPitch,
  kAsync,
  kPool,
  kFeature,
  kPinned,
  kRegistered,
  kPageable
};
enum class FreeForm : std::uint8_t { kMemFree, kFreeAsync, kHost, kFeature };
enum class LaunchForm : std::uint8_t { kFlat, kFlatExtra, kStruct, kStructExtra };
enum class CopyForm : std::uint8_t { kTyped, kUnified, k2D, k2DUnaligned, k3D };
// What an operation of a feature does to one of the feature's objects.
enum class ObjectUse : std::uint8_t { kNone, kMake, kRead, kWrite, kEnd };
enum class FillForm : std::uint8_t { kD8, kD16, kD32, k2D8, k2D16, k2D32 };

inline constexpr int kNone = -1;
// Streams every thread has; created ones count up from kFirstCreatedStream.
inline constexpr int kLegacyStream = 0;
inline constexpr int kPerThreadStream = 1;
inline constexpr int kFirstCreatedStream = 2;
// Events that the generated program names for itself, of each thread.
inline constexpr int kEventsPerThread = 4;
// What the null stream and the synchronous calls mean: nvcc's macro for --default-stream.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
inline constexpr int kDefaultStream = kPerThreadStream;
#else
inline constexpr int kDefaultStream = kLegacyStream;
#endif

constexpr bool IsHostMemory(AllocForm form) {
  return form == AllocForm::kPinned || form == AllocForm::kRegistered ||
         form == AllocForm::kPageable;
}

// Kernels use 8-byte words `stride_bytes` apart (0: every byte); 2D and 3D copies and fills have
// rows `pitch_bytes` apart and slices of `slice_rows` rows. `bytes` is the whole span.
struct View {
  int buffer = kNone;
  std::uint64_t offset_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stride_bytes = 0;
  std::uint64_t pitch_bytes = 0;
  std::uint64_t slice_rows = 0;

  bool IsDense() const { return stride_bytes == 0 && pitch_bytes == 0; }
};

// rows == 0 for one-dimensional copies and fills.
struct Box {
  std::uint64_t row_bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t slices = 1;
};

struct Operation {
  Kind kind = Kind::kContextSync;
  int origin = kNone;
  int thread = 0;
  int to_thread = kNone;   // kGive, kTake
  std::uint8_t form = 0;   // AllocForm, FreeForm, LaunchForm, CopyForm or FillForm, by kind
  bool on_stream = false;  // copies and fills: the Async call, else the synchronous one
  int stream = kDefaultStream;
  int event = kNone;
  int buffer = kNone;
  int pool = kNone;
  bool slow = false;        // kernels: lasts at least a millisecond
  int decoy = kNone;        // kernels: a buffer, live or freed, passed but not accessed
  std::uint64_t bytes = 0;  // kAlloc
  std::vector<std::uint64_t> cuts_bytes =
      {};  // kAlloc: where the buffer's segments begin, ascending, first one 0
  View out = {};
  std::vector<View> in = {};
  std::vector<View> more_out = {};  // features: what else is written
  std::vector<View> scratch = {};   // features: written too, with bytes that mean nothing
  Box box = {};
  int feature = kNone;
  int object = kNone;
  ObjectUse object_use = ObjectUse::kNone;
  std::vector<View> names =
      {};  // with kMake: the parts of buffers that uses of the object will access
  std::vector<Operation> body = {};  // features: operations that this one holds, as a graph does
  std::uint64_t salt = 0;

  // Calls visit(view) for every written part.
  template <typename Visit>
  void ForEachOut(Visit visit) const {
    if (out.buffer != kNone) visit(out);
    for (const View& view : more_out) visit(view);
    for (const View& view : scratch) visit(view);
  }
};

std::string ToText(const Operation& operation);

}  // namespace spillway::fuzz
