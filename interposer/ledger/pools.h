// What each memory pool of the program's would say of itself if its memory were the driver's own:
// used and reserved bytes, their peaks, and which pool an address came from. The memory itself is
// ranges and slabs like any other.
//
// Called by the hooks of stream-ordered allocation and of pools, and by waits, on any thread. One
// for the process, never destroyed. Synchronises itself; its lock is a leaf.
//
// A pool is served from the job's memory (kServed) as long as nothing asks for more than bytes in
// this process on the pool's own device. Otherwise it is the driver's (kDriver), with the reason,
// and what it allocates is counted.
//
// Invariants
//  1. used_bytes of a pool is the sum of its live allocations; reserved_bytes is at least that, in
//  whole granules.
//  2. Reserved memory shrinks only as the documents allow: at a wait, to the release threshold; by
//  a trim.
//  3. A pool that was destroyed is forgotten with its last allocation; a new pool may have its
//  handle before that.
// Never: calls the driver; knows where bytes are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

enum class PoolService : std::uint8_t {
  kServed,    // from the job's memory
  kExported,  // its memory can be exported to other processes
  kHost,      // it lies on the host
  kCapped,    // it has a maximum size or a use of its own
  kManaged,   // the driver moves its memory
  kShared,    // other devices may access it
  kUnknown,   // not made by a call that we saw
};

struct PoolFigures {
  std::uint64_t used_bytes = 0;
  std::uint64_t used_high_bytes = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t reserved_high_bytes = 0;
};

PoolService ServiceOf(const CUmemPoolProps& properties);

class Pools {
 public:
  static Pools& Instance();

  // A pool was made, or is its device's default pool.
  void Add(CUmemoryPool pool, CUdevice device, PoolService service);
  void Destroyed(CUmemoryPool pool);
  // Other devices may access the pool: what it allocates from now on is the driver's.
  void Share(CUmemoryPool pool);
  PoolService Service(CUmemoryPool pool, CUdevice* device);
  // Another device may access the pool, or may not any more; whether any may now.
  bool SetPeer(CUmemoryPool pool, CUdevice peer, bool allowed);
  // The live allocations that were served from the job's memory, before the pool was shared.
  std::vector<CUdeviceptr> ServedFrom(CUmemoryPool pool);

  void Allocated(CUmemoryPool pool, CUdeviceptr address, std::size_t bytes);
  // The pool that the address came from, if that one lives and is the driver's: it may keep the
  // memory.
  CUmemoryPool Freed(CUdeviceptr address);
  // The pool that the address came from, if it was one.
  bool PoolOf(CUdeviceptr address, CUmemoryPool* pool);

  // False when the pool is none of ours.
  bool Read(CUmemoryPool pool, PoolFigures* figures);
  void ResetUsedHigh(CUmemoryPool pool);
  void ResetReservedHigh(CUmemoryPool pool);
  void TrimTo(CUmemoryPool pool, std::uint64_t keep_bytes);
  // Those that live and are the driver's, on a device; costs a load when there are none.
  std::vector<CUmemoryPool> Drivers();
  // A wait has completed: pools give back what is above their thresholds. `threshold(pool)` asks
  // the driver, without the lock. Costs a load when no pool has anything to give.
  template <class Threshold>
  void Waited(Threshold threshold) {
    if (spare_pools_.load(std::memory_order_relaxed) == 0) return;
    std::array<CUmemoryPool, 16> spare;
    const std::size_t count = Spare(&spare);
    for (std::size_t i = 0; i < count; ++i) TrimTo(spare[i], threshold(spare[i]));
  }

  // The device's current pool, as it was last told; null when it must be asked for.
  CUmemoryPool Current(CUdevice device) const;
  void SetCurrent(CUdevice device, CUmemoryPool pool);
  void ForgetCurrent();

 private:
  static constexpr int kDevices = 64;

  struct Account {
    CUmemoryPool pool = nullptr;
    CUdevice device = 0;
    PoolService service = PoolService::kServed;
    PoolFigures figures;
    bool destroyed = false;
    bool counted_spare = false;
    std::vector<CUdevice> peers;
  };
  struct Piece {
    std::shared_ptr<Account> account;
    std::size_t bytes;
    bool served;
  };

  static bool IsDrivers(const Account& account) {
    return account.service != PoolService::kServed && account.service != PoolService::kHost;
  }
  Account* Find(CUmemoryPool pool) SPILLWAY_REQUIRES(mutex_);
  void Take(Account* account, std::size_t bytes) SPILLWAY_REQUIRES(mutex_);
  void NoteSpare(Account* account) SPILLWAY_REQUIRES(mutex_);
  std::size_t Spare(std::array<CUmemoryPool, 16>* pools);

  // Synchronises itself.
  std::atomic<int> spare_pools_{0};  // that hold more than they use
  std::atomic<std::size_t> pieces_count_{0};
  std::atomic<bool> any_drivers_{false};
  std::array<std::atomic<CUmemoryPool>, kDevices> current_{};
  base::Mutex mutex_{base::LockRank::kPools};
  // Guarded by mutex_.
  std::unordered_map<CUmemoryPool, std::shared_ptr<Account>> accounts_ SPILLWAY_GUARDED_BY(mutex_);
  std::unordered_map<CUdeviceptr, Piece> pieces_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
