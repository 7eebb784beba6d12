// Gives our memory to other processes that know its handle.
//
// The first handle starts the service's thread, which answers openers until the process ends. It
// calls the driver only to share memory again that no process has open.
// Invariants
//  1. Memory with a handle stays in place from the handle's making until it is freed or its last
//     opener has closed it. A later opener restores it and finds it where it is then.
//  2. An allocation has one handle while it lives. The handle is never reused.
//  3. Only processes of the same user are answered.
#pragma once

#include <atomic>
#include <map>
#include <unordered_map>

#include "base/mutex.h"
#include "interposer/execute/job_memory.h"
#include "interposer/share/wire.h"

namespace spillway::interposer::share {

class ExportService {
 public:
  static ExportService& Instance();

  CUresult HandleOf(JobMemory* job, CUdeviceptr base, CUipcMemHandle* out);
  // The program freed the allocation. Costs a load while there are no handles.
  static void Freed(CUdeviceptr base) {
    if (any_.load(std::memory_order_relaxed)) Instance().Forget(base);
  }
  // All of the job's memory is gone with its context.
  static void JobEnded(const JobMemory* job) {
    if (any_.load(std::memory_order_relaxed)) Instance().ForgetAllOf(job);
  }

 private:
  struct Export {
    JobMemory* job;
    CUdeviceptr base;
    SharedMemory memory;  // no chunks: no process has it open
    int openers = 0;
  };

  bool StartOnce() SPILLWAY_REQUIRES(mutex_);
  static void* ThreadMain(void* service);
  void Serve();
  // False: the process has no descriptor or memory left. The connection waits.
  bool Accept();
  bool AnswerOn(int connection, std::uint64_t* token);
  bool SendAll(int connection, std::uint64_t token);
  bool SendParts(int connection, const SharedMemory& memory);
  CUresult ShareAgain(std::uint64_t token) SPILLWAY_EXCLUDES(mutex_);
  void Closed(std::uint64_t token);
  void Forget(CUdeviceptr base);
  void ForgetAllOf(const JobMemory* job);
  static void Close(SharedMemory* memory);

  inline static constinit std::atomic<bool> any_{false};
  base::Mutex mutex_{base::LockRank::kExports};
  bool started_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool works_ SPILLWAY_GUARDED_BY(mutex_) = false;
  std::uint64_t socket_name_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint64_t, Export> exports_ SPILLWAY_GUARDED_BY(mutex_);
  std::map<CUdeviceptr, std::uint64_t> tokens_ SPILLWAY_GUARDED_BY(mutex_);
  int listener_ = -1;
  std::unordered_map<int, std::uint64_t> connections_;  // the token asked for; 0: none yet
};

}  // namespace spillway::interposer::share
