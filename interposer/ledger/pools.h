// What each of the program's memory pools would report if the driver served it: used and reserved
// bytes, their peaks, and each address's pool.
//
// Synchronises itself; its lock is a leaf.
//
// A pool is served from the job's memory (kServed) while the program only needs bytes in this
// process on the pool's own device. Otherwise the driver serves it, for the reason given, and it is
// counted.
// Invariants
//  1. used_bytes is the sum of live allocations; reserved_bytes at least that, in whole granules.
//  2. Reserved memory shrinks as documented: at a wait, to the release threshold, and by a trim.
//  3. A destroyed pool is forgotten with its last allocation; its handle may be reused before.
// Never: calls the driver; knows where bytes are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"

namespace spillway::interposer {

enum class PoolService : std::uint8_t {
  kServed,    // from the job's memory
  kExported,  // its memory can be exported to other processes
  kHost,      // it lies on the host
  kCapped,    // it has a maximum size or a special usage
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

  void Add(CUmemoryPool pool, CUdevice device, PoolService service);
  void Destroyed(CUmemoryPool pool);
  // The driver serves the pool's future allocations.
  void Share(CUmemoryPool pool);
  PoolService Service(CUmemoryPool pool, CUdevice* device);
  // Whether any device has access now.
  bool SetPeer(CUmemoryPool pool, CUdevice peer, bool allowed);
  // From before the pool was shared.
  std::vector<CUdeviceptr> ServedFrom(CUmemoryPool pool);

  void Allocated(CUmemoryPool pool, CUdeviceptr address, std::size_t bytes);
  // The pool, if the driver serves it and it still exists: it may keep the memory.
  CUmemoryPool Freed(CUdeviceptr address);
  CUmemoryPool PoolOf(CUdeviceptr address);  // null: of none

  std::optional<PoolFigures> Read(CUmemoryPool pool);
  void ResetUsedHigh(CUmemoryPool pool);
  void ResetReservedHigh(CUmemoryPool pool);
  void TrimTo(CUmemoryPool pool, std::uint64_t keep_bytes);
  // That the driver serves. Costs a load if there are none.
  std::vector<CUmemoryPool> Drivers();
  // Pools give back memory above their thresholds. `threshold(pool)` asks the driver, without the
  // lock. Costs a load if no pool has spare memory.
  template <class Threshold>
  void Waited(Threshold threshold) {
    if (spare_pools_.load(std::memory_order_relaxed) == 0) return;
    std::array<CUmemoryPool, 16> spare;
    const std::size_t count = Spare(&spare);
    for (std::size_t i = 0; i < count; ++i) TrimTo(spare[i], threshold(spare[i]));
  }

  // The device's current pool as last known; null: it must be queried.
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

  std::atomic<int> spare_pools_{0};  // pools that hold more than they use
  std::atomic<std::size_t> pieces_count_{0};
  std::atomic<bool> any_drivers_{false};
  std::array<std::atomic<CUmemoryPool>, kDevices> current_{};
  base::Mutex mutex_{base::LockRank::kPools};
  std::unordered_map<CUmemoryPool, std::shared_ptr<Account>> accounts_ SPILLWAY_GUARDED_BY(mutex_);
  std::unordered_map<CUdeviceptr, Piece> pieces_ SPILLWAY_GUARDED_BY(mutex_);
};

}  // namespace spillway::interposer
