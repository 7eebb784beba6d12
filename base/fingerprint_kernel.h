// What the kernel that fingerprints memory computes.
//
// Shared by the kernel (interposer/kernels/fingerprint.cu), its launcher
// (interposer/execute/residency/fingerprints.h) and its body for the simulated GPU
// (simulator/plugins/fingerprint.cpp).
//
// The hash. Bytes are read as 16-byte words (low, high), little-endian and counted from the first
// byte; zeros complete the last word. Two sums modulo 2^64, one per Lane of the key, take
//     Fold((low ^ key of low at i) * (high ^ key of high at i))
// of each word i that is not zero. Words that are zero add nothing, so zeros may be skipped. A
// sum's order is free, so blocks add in any order. The length enters when a sum is finished.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define SPILLWAY_ON_BOTH __host__ __device__
#else
#define SPILLWAY_ON_BOTH
#endif

namespace spillway::fingerprint_kernel {

inline constexpr char kName[] = "spillway_fingerprint";
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};
inline constexpr std::uint32_t kThreads = 256;  // per block
inline constexpr std::uint32_t kWordBytes = 16;
// A block reads as much of a small piece. Blocks of a large piece take turns at its words.
inline constexpr std::uint64_t kBlockBytes = 64 << 10;
inline constexpr std::uint64_t kMostBlocks = 2048;  // per piece

// All random; a step is odd, so that the 2^64 places of a word have different keys.
struct Lane {
  std::uint64_t low, low_step;
  std::uint64_t high, high_step;
  std::uint64_t last;
};

struct Key {
  Lane lanes[2];
};

struct Piece {
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint32_t to;
  std::uint32_t expected;     // kNone: no comparison
  std::uint32_t first_block;  // of the grid
  std::uint32_t block_count;
};

// Numbered as slots are, from 1 on. Record 0 counts the comparisons that differed.
struct DeviceRecord {
  std::uint64_t sums[2];
  std::uint64_t words[2];
  std::uint32_t blocks_done;
  std::uint32_t mismatches;  // of record 0
  std::uint64_t unused[3];
};
static_assert(sizeof(DeviceRecord) == 64);

struct HostRecord {
  std::uint64_t words[2];
  std::uint32_t differs;
  std::uint32_t mismatches;  // of record 0
  std::uint64_t unused;
};
static_assert(sizeof(HostRecord) == 32);

inline constexpr std::uint32_t kMostPieces = 123;  // a launch passes 4 KiB

struct Launch {
  Key key;
  std::uint64_t device_records;
  std::uint64_t host_records;  // as the device sees pinned memory
  std::uint32_t piece_count;
  std::uint32_t unused;
  Piece pieces[kMostPieces];
};
static_assert(sizeof(Launch) <= 4096);

inline std::uint64_t BlocksOf(std::uint64_t bytes) {
  const std::uint64_t blocks = bytes / kBlockBytes + (bytes % kBlockBytes != 0);
  return blocks == 0 ? 1 : blocks < kMostBlocks ? blocks : kMostBlocks;
}

SPILLWAY_ON_BOTH inline std::uint64_t Fold(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return (a * b) ^ __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#endif
}

// One thread's words of a piece, at equal steps: each key follows from the one before by an
// addition.
class WordSums {
 public:
  SPILLWAY_ON_BOTH WordSums(const Key& key, std::uint64_t first_word, std::uint64_t step) {
    for (int i = 0; i < 2; ++i) {
      const Lane& lane = key.lanes[i];
      keys_[i][0] = lane.low + first_word * lane.low_step;
      keys_[i][1] = lane.high + first_word * lane.high_step;
      steps_[i][0] = step * lane.low_step;
      steps_[i][1] = step * lane.high_step;
    }
  }
  SPILLWAY_ON_BOTH void Add(std::uint64_t low, std::uint64_t high) {
    const bool counts = (low | high) != 0;
    for (int i = 0; i < 2; ++i) {
      sums_[i] += counts ? Fold(low ^ keys_[i][0], high ^ keys_[i][1]) : 0;
      keys_[i][0] += steps_[i][0];
      keys_[i][1] += steps_[i][1];
    }
  }
  SPILLWAY_ON_BOTH std::uint64_t sum(int i) const { return sums_[i]; }

 private:
  std::uint64_t keys_[2][2];
  std::uint64_t steps_[2][2];
  std::uint64_t sums_[2] = {0, 0};
};

// One to one in `sum` and in `bytes` (MurmurHash3's finalizer), so it adds no collisions.
SPILLWAY_ON_BOTH inline std::uint64_t Finish(const Lane& lane, std::uint64_t sum,
                                             std::uint64_t bytes) {
  std::uint64_t h = sum + lane.last + bytes * (lane.low_step ^ (lane.high_step << 1));
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccd;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}

}  // namespace spillway::fingerprint_kernel

#undef SPILLWAY_ON_BOTH
