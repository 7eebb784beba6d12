// The thread that stores host copies of idle memory in the job's file, and gets them back.
//
// The lease thread passes on what the agent says, with the session's lock held. The thread starts
// with the first file, with all signals blocked. It alone waits for the disk, but for calls that
// need stored bytes now.
// Invariants
//  1. It stores only while the job is idle or waits for its turn, and no return was asked for. It
//     stops within a block (Spilling) when that changes.
//  2. After Detach it does not touch the memory.
//  3. A file whose bytes are all back is closed. The agent gives another one when it wants to.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "interposer/execute/job_memory.h"
#include "interposer/lease/notifier.h"
#include "protocol/message.h"

namespace spillway::interposer {

class SpillThread {
 public:
  void Attach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);
  // Waits for the end of the block at hand.
  void Detach(JobMemory* memory) SPILLWAY_EXCLUDES(mutex_);

  void TakeFile(const protocol::SpillFile& file, base::UniqueFd descriptor)
      SPILLWAY_EXCLUDES(mutex_);
  void ReturnAll(std::uint32_t device) SPILLWAY_EXCLUDES(mutex_);
  // Whether the job is idle there or waits for its turn, as of now.
  void NoteRest(std::uint32_t device, bool rests) SPILLWAY_EXCLUDES(mutex_);

 private:
  enum class Task : std::uint8_t { kStore, kReturn };
  struct Device {
    JobMemory* memory = nullptr;
    bool has_file = false;
    bool rests = false;
    bool must_return = false;
    bool is_done = false;  // nothing more to do until something changes
  };
  struct Work {
    std::uint32_t device = 0;
    JobMemory* memory = nullptr;
    Task task{};
  };

  static Task TaskOf(const Device& device) {
    return device.rests && !device.must_return ? Task::kStore : Task::kReturn;
  }
  void Start() SPILLWAY_REQUIRES(mutex_);
  void Run() SPILLWAY_EXCLUDES(mutex_);
  std::optional<Work> Take() SPILLWAY_EXCLUDES(mutex_);
  bool GoesOn(const Work& work) SPILLWAY_EXCLUDES(mutex_);
  void Do(const Work& work) SPILLWAY_EXCLUDES(mutex_);

  Notifier notifier_;
  base::Mutex mutex_{base::LockRank::kSpilling};
  std::array<Device, protocol::kMostDevices> devices_ SPILLWAY_GUARDED_BY(mutex_);
  JobMemory* served_ SPILLWAY_GUARDED_BY(mutex_) = nullptr;
  bool has_started_ SPILLWAY_GUARDED_BY(mutex_) = false;
};

}  // namespace spillway::interposer
