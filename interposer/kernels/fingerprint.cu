// Fingerprints memory: base/fingerprint_kernel.h says what is computed.
//
// One launch serves many pieces; each has consecutive blocks of the grid. A block adds its sums to
// the record of the piece. The last block finishes them, compares, and leaves the record as it was
// found, with sums of zero.
#include "base/fingerprint_kernel.h"

namespace spillway::fingerprint_kernel {
namespace {

using Sum = unsigned long long;  // as atomics name 64 bits

struct Word {
  std::uint64_t low, high;
};

struct alignas(16) AlignedWord {
  std::uint64_t low, high;
};

__device__ const Piece& PieceOf(const Launch& launch, std::uint32_t block) {
  std::uint32_t first = 0, end = launch.piece_count;
  while (end - first > 1) {
    const std::uint32_t middle = (first + end) / 2;
    if (launch.pieces[middle].first_block <= block)
      first = middle;
    else
      end = middle;
  }
  return launch.pieces[first];
}

// The first `bytes` of the word stay, at most 15.
__device__ Word Shortened(Word word, std::uint64_t bytes) {
  const std::uint64_t bits = 8 * bytes;
  const std::uint64_t ones = ~std::uint64_t{0};
  word.low = bits < 64 ? word.low & ~(ones << bits) : word.low;
  word.high = bits <= 64 ? 0 : word.high & ~(ones << (bits - 64));
  return word;
}

__device__ Word Joined(const AlignedWord& a, const AlignedWord& b, std::uint64_t skip) {
  const bool by_half = skip >= 8;
  const std::uint64_t first = by_half ? a.high : a.low;
  const std::uint64_t second = by_half ? b.low : a.high;
  const std::uint64_t third = by_half ? b.high : b.low;
  const std::uint64_t bits = 8 * (skip % 8);
  if (bits == 0) return {first, second};
  return {first >> bits | second << (64 - bits), second >> bits | third << (64 - bits)};
}

// Adds words i, i + step, ... below `end`; then `i` is the first that is not. Loads of several
// words are in flight before the first is used.
template <class Read>
__device__ void AddWords(Read read, std::uint64_t* i, std::uint64_t step, std::uint64_t end,
                         WordSums* sums) {
  constexpr int kAhead = 4;
  for (; *i + (kAhead - 1) * step < end; *i += kAhead * step) {
    Word ahead[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) ahead[k] = read(*i + k * step);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) sums->Add(ahead[k].low, ahead[k].high);
  }
  for (; *i < end; *i += step) {
    const Word word = read(*i);
    sums->Add(word.low, word.high);
  }
}

// Reads aligned words only, and of these only such as hold a byte of the piece.
__device__ WordSums SumsOfThread(const Key& key, const Piece& piece, std::uint32_t block) {
  const auto* const words =
      reinterpret_cast<const AlignedWord*>(piece.begin & ~std::uint64_t{kWordBytes - 1});
  const std::uint64_t skip = piece.begin % kWordBytes;
  const std::uint64_t whole = piece.bytes / kWordBytes, rest_bytes = piece.bytes % kWordBytes;
  const std::uint64_t step = std::uint64_t{piece.block_count} * kThreads;
  std::uint64_t i = std::uint64_t{block} * kThreads + threadIdx.x;
  WordSums sums(key, i, step);
  const auto aligned = [=](std::uint64_t at) {
    const AlignedWord word = words[at];
    return Word{word.low, word.high};
  };
  const auto shifted = [=](std::uint64_t at) { return Joined(words[at], words[at + 1], skip); };
  if (skip == 0)
    AddWords(aligned, &i, step, whole, &sums);
  else
    AddWords(shifted, &i, step, whole, &sums);
  if (i != whole || rest_bytes == 0) return sums;
  const AlignedWord none = {0, 0};
  const AlignedWord next = skip + rest_bytes > kWordBytes ? words[whole + 1] : none;
  const Word word = Shortened(Joined(words[whole], next, skip), rest_bytes);
  sums.Add(word.low, word.high);
  return sums;
}

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;

// In thread 0 the sum over the block, through `of_warp`, which is shared.
__device__ Sum SumOfBlock(Sum value, Sum (&of_warp)[kWarps]) {
  constexpr unsigned kAllLanes = 0xffffffff;
  for (int delta = kWarp / 2; delta > 0; delta /= 2)
    value += __shfl_down_sync(kAllLanes, value, delta);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  for (int warp = 1; warp < kWarps && threadIdx.x == 0; ++warp) value += of_warp[warp];
  return value;
}

// The host's count ends as the device's: a block that wrote an older one after a newer one sees the
// newer one here.
__device__ void CountMismatch(DeviceRecord* device, volatile HostRecord* host) {
  unsigned counted = atomicAdd(&device->mismatches, 1u) + 1;
  for (unsigned written = 0; written != counted;) {
    written = counted;
    host->mismatches = written;
    __threadfence_system();
    counted = atomicAdd(&device->mismatches, 0u);
  }
}

__device__ void FinishPiece(const Launch& launch, const Piece& piece) {
  auto* const devices = reinterpret_cast<DeviceRecord*>(launch.device_records);
  auto* const hosts = reinterpret_cast<volatile HostRecord*>(launch.host_records);
  DeviceRecord& record = devices[piece.to];
  std::uint64_t words[2];
  for (int i = 0; i < 2; ++i) {
    const Sum sum = atomicExch(reinterpret_cast<Sum*>(&record.sums[i]), 0);
    words[i] = Finish(launch.key.lanes[i], sum, piece.bytes);
  }
  record.blocks_done = 0;
  bool differs = false;
  if (piece.expected != kNone) {
    const volatile DeviceRecord& expected = devices[piece.expected];
    differs = expected.words[0] != words[0] || expected.words[1] != words[1];
  }
  for (int i = 0; i < 2; ++i) hosts[piece.to].words[i] = record.words[i] = words[i];
  hosts[piece.to].differs = differs;
  if (differs) CountMismatch(devices, hosts);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) spillway_fingerprint(const Launch launch) {
  const Piece& piece = PieceOf(launch, blockIdx.x);
  const WordSums sums = SumsOfThread(launch.key, piece, blockIdx.x - piece.first_block);
  __shared__ Sum of_warp[2][kWarps];
  const Sum first = SumOfBlock(sums.sum(0), of_warp[0]);
  const Sum second = SumOfBlock(sums.sum(1), of_warp[1]);
  if (threadIdx.x != 0) return;
  DeviceRecord& record = reinterpret_cast<DeviceRecord*>(launch.device_records)[piece.to];
  atomicAdd(reinterpret_cast<Sum*>(&record.sums[0]), first);
  atomicAdd(reinterpret_cast<Sum*>(&record.sums[1]), second);
  __threadfence();
  if (atomicAdd(&record.blocks_done, 1u) + 1 != piece.block_count) return;
  __threadfence();
  FinishPiece(launch, piece);
}

}  // namespace spillway::fingerprint_kernel
