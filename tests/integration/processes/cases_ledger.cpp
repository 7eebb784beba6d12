// A long random walk through every way to allocate and free: the accounts stay exact.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/integration/processes/cases.h"
#include "tests/integration/processes/work.h"

namespace spillway::processes {
namespace {

constexpr int kSteps = 100'000;
constexpr int kPlaces = 48;
constexpr std::size_t kGranule = 2 * kMiB;

// One allocation and the call that must free it.
struct Place {
  enum Kind { kEmpty, kPlain, kAsync, kPool, kMapped } kind = kEmpty;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
};

class Walk {
 public:
  explicit Walk(unsigned seed) : random_(seed) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    MUST(cuMemPoolCreate(&pool_, &properties));
  }

  void Step() {
    Place& place = places_[random_() % kPlaces];
    if (place.kind == Place::kEmpty) return Take(place);
    if (random_() % 20 == 0) MUST(cuMemsetD8(place.address, 1, place.bytes));
    if (random_() % 50 == 0) ShareOnce(place);
    Give(place);
    if (random_() % 3 == 0) Take(place);  // as realloc does
  }
  // Free memory never exceeds the total, and held memory is not free.
  void CheckAnswers() const {
    std::size_t free_bytes = 0, total_bytes = 0;
    MUST(cuMemGetInfo(&free_bytes, &total_bytes));
    if (free_bytes <= total_bytes) return;
    std::printf("%zu free of %zu\n", free_bytes, total_bytes);
    std::fflush(stdout);
    std::_Exit(92);
  }
  void End() {
    for (Place& place : places_) {
      if (place.kind != Place::kEmpty) Give(place);
    }
    MUST(cuCtxSynchronize());
    MUST(cuMemPoolDestroy(pool_));
  }

 private:
  void Take(Place& place) {
    static constexpr std::size_t kSizes[] = {512,      4096,     100'000, kMiB,
                                             kGranule, 3 * kMiB, 6 * kMiB};
    place.bytes = kSizes[random_() % 7];
    switch (random_() % 5) {
      case 0:
        place.kind = Place::kAsync;
        return MUST(cuMemAllocAsync(&place.address, place.bytes, nullptr));
      case 1:
        place.kind = Place::kPool;
        return MUST(cuMemAllocFromPoolAsync(&place.address, place.bytes, pool_, nullptr));
      case 2:
        if (mapped_ < 4) return Map(place);
        [[fallthrough]];
      default:
        place.kind = Place::kPlain;
        return MUST(cuMemAlloc(&place.address, place.bytes));
    }
  }

  void Map(Place& place) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    place.kind = Place::kMapped;
    place.bytes = kGranule;
    MUST(cuMemAddressReserve(&place.address, kGranule, 0, 0, 0));
    MUST(cuMemCreate(&place.handle, kGranule, &properties, 0));
    MUST(cuMemMap(place.address, kGranule, 0, place.handle, 0));
    MUST(cuMemSetAccess(place.address, kGranule, &access, 1));
    ++mapped_;
  }

  void Give(Place& place) {
    switch (place.kind) {
      case Place::kPlain:
        MUST(cuMemFree(place.address));
        break;
      case Place::kMapped:
        MUST(cuCtxSynchronize());
        MUST(cuMemUnmap(place.address, kGranule));
        MUST(cuMemRelease(place.handle));
        MUST(cuMemAddressFree(place.address, kGranule));
        --mapped_;
        break;
      default:
        MUST(cuMemFreeAsync(place.address, nullptr));
    }
    place.kind = Place::kEmpty;
  }

  // The driver decides whether there can be a handle.
  static void ShareOnce(const Place& place) {
    CUipcMemHandle handle;
    if (place.kind == Place::kPlain) cuIpcGetMemHandle(&handle, place.address);
  }

  std::minstd_rand random_;
  CUmemoryPool pool_ = nullptr;
  Place places_[kPlaces];
  int mapped_ = 0;
};

std::size_t FreeBytes() {
  std::size_t free_bytes = 0, total_bytes = 0;
  MUST(cuMemGetInfo(&free_bytes, &total_bytes));
  return free_bytes;
}

int LedgerWalk(const std::string&) {
  Begin();
  CUdeviceptr first = 0;
  MUST(cuMemAlloc(&first, kGranule));  // so that everything is set up
  MUST(cuMemFree(first));
  const std::size_t free_before_bytes = FreeBytes();
  Walk walk(1);
  for (int step = 0; step < kSteps; ++step) {
    walk.Step();
    if (step % 100 == 0) walk.CheckAnswers();
  }
  walk.End();
  std::printf("%lld bytes are missing in the end\n",
              static_cast<long long>(free_before_bytes) - static_cast<long long>(FreeBytes()));
  return 0;
}

// Processes killed in the middle leave the accounts of others intact.
int LedgerWalkKilled(const std::string&) {
  pid_t walkers[4];
  for (pid_t& walker : walkers) {
    walker = fork();
    if (walker != 0) continue;
    Begin();
    Walk walk(static_cast<unsigned>(getpid()));
    for (;;) walk.Step();
  }
  Begin();
  Walk walk(2);
  int killed = 0;
  for (int step = 0; step < 4000; ++step) {
    walk.Step();
    if (step % 1000 == 500) kill(walkers[killed++], SIGKILL);
  }
  walk.End();
  for (pid_t walker : walkers) waitpid(walker, nullptr, 0);
  std::printf("%d killed\n", killed);
  return 0;
}

}  // namespace

std::vector<Case> LedgerCases() {
  return {{"ledger_walk", LedgerWalk}, {"ledger_walk_killed", LedgerWalkKilled}};
}

}  // namespace spillway::processes
