// Gives memory of ours to other processes that know its handle.
//
// HandleOf and Freed are called by hooks, on any thread. The first handle starts the service's own
// thread, which answers openers until the process ends; it calls the driver only to share anew what
// nobody has had open for a while. Ownership: one instance, never destroyed. It owns descriptors of
// what is shared at the moment.
//
// Invariants
//  1. What has a handle stays where it is from the handle's making on, until it is freed or the
//  last opener has closed it.
//     A later opener finds it where it is then: it is brought back.
//  2. An allocation has one handle while it lives, and no other allocation ever has it.
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
  // The program freed the allocation. Costs a load while nothing has a handle.
  static void Freed(CUdeviceptr base) {
    if (any_.load(std::memory_order_relaxed)) Instance().Forget(base);
  }

 private:
  struct Export {
    JobMemory* job;
    CUdeviceptr base;
    SharedMemory memory;  // no chunks: nobody has it open
    int openers = 0;
  };

  bool StartOnce() SPILLWAY_REQUIRES(mutex_);
  static void* ThreadMain(void* service);
  void Serve();
  void Accept();
  bool AnswerOn(int connection, std::uint64_t* token);
  bool SendAll(int connection, std::uint64_t token);
  bool SendParts(int connection, const SharedMemory& memory);
  CUresult ShareAgain(std::uint64_t token) SPILLWAY_EXCLUDES(mutex_);
  void Closed(std::uint64_t token);
  void Forget(CUdeviceptr base);
  static void Close(SharedMemory* memory);

  inline static constinit std::atomic<bool> any_{false};
  base::Mutex mutex_{base::LockRank::kExports};
  bool started_ SPILLWAY_GUARDED_BY(mutex_) = false;
  bool works_ SPILLWAY_GUARDED_BY(mutex_) = false;
  std::uint64_t socket_name_ SPILLWAY_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint64_t, Export> exports_ SPILLWAY_GUARDED_BY(mutex_);  // by token
  std::map<CUdeviceptr, std::uint64_t> tokens_ SPILLWAY_GUARDED_BY(mutex_);
  // The service's thread's.
  int listener_ = -1;
  std::unordered_map<int, std::uint64_t> connections_;  // token, once it was asked for; 0 before
};

}  // namespace spillway::interposer::share
