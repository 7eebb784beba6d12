#include "interposer/ledger/pools.h"

#include <algorithm>

namespace spillway::interposer {

using base::MutexLock;

namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;
constexpr std::uint64_t kSmallUnit = 512;
constexpr std::uint64_t kSmallBelow = std::uint64_t{1} << 20;

std::uint64_t RoundedTo(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// As in the driver's pools: small pieces share granules, large ones have their own.
std::uint64_t PieceBytes(std::size_t bytes) {
  return RoundedTo(bytes, bytes < kSmallBelow ? kSmallUnit : kGranule);
}

std::uint64_t LeastReserved(const PoolFigures& figures) {
  return RoundedTo(figures.used_bytes, kGranule);
}

}  // namespace

PoolService ServiceOf(const CUmemPoolProps& properties) {
  if (properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return PoolService::kExported;
  if (properties.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return PoolService::kManaged;
  if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return PoolService::kHost;
  return properties.maxSize || properties.usage ? PoolService::kCapped : PoolService::kServed;
}

Pools& Pools::Instance() {
  static Pools* const pools = new Pools;
  return *pools;
}

Pools::Account* Pools::Find(CUmemoryPool pool) {
  const auto at = accounts_.find(pool);
  return at == accounts_.end() ? nullptr : at->second.get();
}

void Pools::Add(CUmemoryPool pool, CUdevice device, PoolService service) {
  auto account = std::make_shared<Account>();
  account->pool = pool;
  account->device = device;
  account->service = service;
  if (IsDrivers(*account)) any_drivers_.store(true, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  accounts_[pool] = std::move(account);
}

void Pools::Destroyed(CUmemoryPool pool) {
  ForgetCurrent();
  const MutexLock lock(mutex_);
  Account* const account = Find(pool);
  if (!account) return;
  account->destroyed = true;
  NoteSpare(account);
  accounts_.erase(pool);  // its pieces keep it until they are freed
}

void Pools::Share(CUmemoryPool pool) {
  const MutexLock lock(mutex_);
  if (Account* const account = Find(pool)) account->service = PoolService::kShared;
  any_drivers_.store(true, std::memory_order_relaxed);
}

PoolService Pools::Service(CUmemoryPool pool, CUdevice* device) {
  const MutexLock lock(mutex_);
  const Account* const account = Find(pool);
  if (!account) return PoolService::kUnknown;
  *device = account->device;
  return account->service;
}

void Pools::Allocated(CUmemoryPool pool, CUdeviceptr address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const auto at = accounts_.find(pool);
  if (at == accounts_.end()) return;
  const bool served = at->second->service == PoolService::kServed;
  if (served) Take(at->second.get(), bytes);
  pieces_.insert_or_assign(address, Piece{at->second, bytes, served});
  pieces_count_.store(pieces_.size(), std::memory_order_relaxed);
}

void Pools::Take(Account* account, std::size_t bytes) {
  PoolFigures& figures = account->figures;
  figures.used_bytes += PieceBytes(bytes);
  figures.used_high_bytes = std::max(figures.used_high_bytes, figures.used_bytes);
  figures.reserved_bytes = std::max(figures.reserved_bytes, LeastReserved(figures));
  figures.reserved_high_bytes = std::max(figures.reserved_high_bytes, figures.reserved_bytes);
  NoteSpare(account);
}

CUmemoryPool Pools::Freed(CUdeviceptr address) {
  if (pieces_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const MutexLock lock(mutex_);
  const auto at = pieces_.find(address);
  if (at == pieces_.end()) return nullptr;
  const Piece piece = at->second;
  pieces_.erase(at);
  pieces_count_.store(pieces_.size(), std::memory_order_relaxed);
  Account& account = *piece.account;
  if (!piece.served) return account.destroyed ? nullptr : account.pool;
  account.figures.used_bytes -= PieceBytes(piece.bytes);
  NoteSpare(&account);
  return nullptr;
}

std::vector<CUmemoryPool> Pools::Drivers() {
  std::vector<CUmemoryPool> pools;
  if (!any_drivers_.load(std::memory_order_relaxed)) return pools;
  const MutexLock lock(mutex_);
  for (const auto& [pool, account] : accounts_) {
    if (IsDrivers(*account)) pools.push_back(pool);
  }
  return pools;
}

bool Pools::SetPeer(CUmemoryPool pool, CUdevice peer, bool allowed) {
  const MutexLock lock(mutex_);
  Account* const account = Find(pool);
  if (!account) return false;
  std::erase(account->peers, peer);
  if (allowed) account->peers.push_back(peer);
  return !account->peers.empty();
}

std::vector<CUdeviceptr> Pools::ServedFrom(CUmemoryPool pool) {
  std::vector<CUdeviceptr> served;
  const MutexLock lock(mutex_);
  for (const auto& [address, piece] : pieces_) {
    const bool is_its = piece.account->pool == pool && !piece.account->destroyed;
    if (is_its && piece.served) served.push_back(address);
  }
  return served;
}

CUmemoryPool Pools::PoolOf(CUdeviceptr address) {
  if (pieces_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const MutexLock lock(mutex_);
  const auto at = pieces_.find(address);
  return at == pieces_.end() ? nullptr : at->second.account->pool;
}

std::optional<PoolFigures> Pools::Read(CUmemoryPool pool) {
  const MutexLock lock(mutex_);
  const Account* const account = Find(pool);
  return account ? std::optional(account->figures) : std::nullopt;
}

void Pools::ResetUsedHigh(CUmemoryPool pool) {
  const MutexLock lock(mutex_);
  if (Account* const account = Find(pool))
    account->figures.used_high_bytes = account->figures.used_bytes;
}

void Pools::ResetReservedHigh(CUmemoryPool pool) {
  const MutexLock lock(mutex_);
  if (Account* const account = Find(pool)) {
    account->figures.reserved_high_bytes = account->figures.reserved_bytes;
  }
}

void Pools::TrimTo(CUmemoryPool pool, std::uint64_t keep_bytes) {
  const MutexLock lock(mutex_);
  Account* const account = Find(pool);
  if (!account) return;
  PoolFigures& figures = account->figures;
  figures.reserved_bytes =
      std::max(LeastReserved(figures), std::min(figures.reserved_bytes, keep_bytes));
  NoteSpare(account);
}

void Pools::NoteSpare(Account* account) {
  const bool spare =
      !account->destroyed && account->figures.reserved_bytes > LeastReserved(account->figures);
  if (spare == account->counted_spare) return;
  account->counted_spare = spare;
  spare_pools_.fetch_add(spare ? 1 : -1, std::memory_order_relaxed);
}

std::size_t Pools::Spare(std::array<CUmemoryPool, 16>* pools) {
  std::size_t count = 0;
  const MutexLock lock(mutex_);
  for (const auto& [pool, account] : accounts_) {
    if (account->counted_spare && count < pools->size()) (*pools)[count++] = pool;
  }
  return count;
}

CUmemoryPool Pools::Current(CUdevice device) const {
  return device >= 0 && device < kDevices ? current_[device].load(std::memory_order_acquire)
                                          : nullptr;
}

void Pools::SetCurrent(CUdevice device, CUmemoryPool pool) {
  if (device >= 0 && device < kDevices) current_[device].store(pool, std::memory_order_release);
}

void Pools::ForgetCurrent() {
  for (auto& pool : current_) pool.store(nullptr, std::memory_order_release);
}

}  // namespace spillway::interposer
