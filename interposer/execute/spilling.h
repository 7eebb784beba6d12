// Stores host copies of an idle job in its file, and gets them back: the steps with input and
// output, which hold no lock meanwhile.
//
// Called by the spill thread (planning/spill_thread.h), which stores and returns one range at a
// time, and by calls that need a range now.
//
// Invariants
//  1. Nobody waits for the disk while holding a lock of the job, but for what calls rarely do
//     (SpilledCopies::LoadNow).
//  2. After a failed write nothing more is stored in that file; the host copies stay.
//  3. Bytes that cannot be read, and exist nowhere else, end the job's use of the device
//     (JobView::IsWrong). The program never receives others for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/function_ref.h"
#include "interposer/execute/job_state.h"

namespace spillway::interposer {

class Spilling {
 public:
  explicit Spilling(JobState& state) : state_(state) {}

  // From now on. What lies in an earlier file stays there until it is needed.
  void SetFile(std::shared_ptr<SpillFile> file) SPILLWAY_EXCLUDES(kStateLock);
  // The least recently used copy that fits. False: there is none, or the file failed. Both stop
  // soon, with nothing changed, when `goes_on` is false.
  bool StoreOne(base::FunctionRef<bool()> goes_on) SPILLWAY_EXCLUDES(kStateLock);
  // The most recently used range. False: nothing is stored, or there is no host memory.
  bool ReturnOne(base::FunctionRef<bool()> goes_on) SPILLWAY_EXCLUDES(kStateLock);
  // The file ends if nothing is stored there.
  void CloseEmptyFile() SPILLWAY_EXCLUDES(kStateLock);

  // The range's bytes, if they are stored. The caller has pinned it. False: there is no host
  // memory, or the bytes are lost.
  bool Load(Range* range, base::FunctionRef<bool()> goes_on) SPILLWAY_EXCLUDES(kStateLock);
  bool Load(Range* range) SPILLWAY_EXCLUDES(kStateLock) {
    return Load(range, [] { return true; });
  }

  // Host copies of resident memory go, once the job has had all its memory on the device for
  // kSettledNs: they cost host memory, and save no copy.
  static constexpr std::uint64_t kSettledNs = 10'000'000'000;
  void ReleaseSpareCopies(std::uint64_t now_ns) SPILLWAY_EXCLUDES(kStateLock);

  // Any thread.
  std::uint64_t file_serial() const { return serial_.load(std::memory_order_relaxed); }
  size_t file_bytes() const { return file_bytes_.load(std::memory_order_relaxed); }
  bool IsLost() const SPILLWAY_UNANALYSED { return state_.residency.copies().spilled().IsLost(); }

 private:
  bool BeginStore(SpilledCopies::Store* store) SPILLWAY_EXCLUDES(kStateLock);
  bool WriteBlocks(SpilledCopies::Store* store, base::FunctionRef<bool()> goes_on)
      SPILLWAY_EXCLUDES(kStateLock);
  void NoteFailure(const SpillFile& file, const base::Status& status) SPILLWAY_EXCLUDES(kStateLock);
  Range* NextToReturn() SPILLWAY_REQUIRES(kStateLock);
  bool HasPressure() SPILLWAY_REQUIRES(kStateLock);

  JobState& state_;
  std::shared_ptr<SpillFile> file_ SPILLWAY_GUARDED_BY(kStateLock);
  bool has_failed_ SPILLWAY_GUARDED_BY(kStateLock) = false;
  std::uint64_t evictions_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
  std::uint64_t settled_ns_ SPILLWAY_GUARDED_BY(kStateLock) = 0;
  std::atomic<std::uint64_t> serial_{0};
  std::atomic<size_t> file_bytes_{0};
};

}  // namespace spillway::interposer
