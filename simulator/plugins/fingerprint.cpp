// The kernel that fingerprints memory (base/fingerprint_kernel.h), for the CPU.
//
// A GPU's blocks are loops over a piece's words here, and memory that was never written is skipped:
// zeros add nothing. Threads: as all bodies (simulator/kernels/image.h). Never: allocates.
#include "base/fingerprint_kernel.h"

#include <algorithm>
#include <cstring>

#include "simulator/kernels/image.h"

namespace spillway::simulator {
namespace {

using fingerprint_kernel::DeviceRecord;
using fingerprint_kernel::HostRecord;
using fingerprint_kernel::kWordBytes;
using fingerprint_kernel::Lane;
using fingerprint_kernel::Launch;
using fingerprint_kernel::Piece;
using fingerprint_kernel::WordSums;

const DriverServices* services = nullptr;

const Launch& LaunchOf(void* const* arguments) { return *static_cast<const Launch*>(arguments[0]); }

template <class T>
T* At(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

struct Reading {
  const Launch& launch;
  const Piece& piece;
  std::uint64_t next_word = 0;
  std::uint64_t sums[2] = {0, 0};
};

// WordSums computes the same, but the compiler keeps its arrays in memory.
std::uint64_t LaneSum(const Lane& lane, const char* from, std::uint64_t i, std::uint64_t last) {
  std::uint64_t low_key = lane.low + i * lane.low_step;
  std::uint64_t high_key = lane.high + i * lane.high_step;
  const std::uint64_t low_step = lane.low_step;
  const std::uint64_t high_step = lane.high_step;
  std::uint64_t sum = 0;
  for (; i < last; ++i, from += kWordBytes, low_key += low_step, high_key += high_step) {
    std::uint64_t word[2];
    std::memcpy(word, from, kWordBytes);
    const std::uint64_t folded = fingerprint_kernel::Fold(word[0] ^ low_key, word[1] ^ high_key);
    sum += (word[0] | word[1]) != 0 ? folded : 0;
  }
  return sum;
}

void AddWholeWords(Reading& reading, std::uint64_t i, std::uint64_t last) {
  constexpr std::uint64_t kWordsAtOnce = 1024;
  while (i < last) {
    const std::uint64_t end = std::min(last, i + kWordsAtOnce);
    const auto* const from = At<const char>(reading.piece.begin + i * kWordBytes);
    for (int lane = 0; lane < 2; ++lane)
      reading.sums[lane] += LaneSum(reading.launch.key.lanes[lane], from, i, end);
    i = end;
  }
}

void AddLastWord(Reading& reading, std::uint64_t i) {
  std::uint64_t word[2] = {0, 0};
  std::memcpy(word, At<const char>(reading.piece.begin + i * kWordBytes),
              reading.piece.bytes - i * kWordBytes);
  WordSums sums(reading.launch.key, i, 1);
  sums.Add(word[0], word[1]);
  for (int lane = 0; lane < 2; ++lane) reading.sums[lane] += sums.sum(lane);
}

// A word in two parts is added once.
void AddPart(void* context, const void* begin, const void* end) {
  Reading& reading = *static_cast<Reading*>(context);
  const Piece& piece = reading.piece;
  const std::uint64_t from = reinterpret_cast<std::uint64_t>(begin) - piece.begin;
  const std::uint64_t to = reinterpret_cast<std::uint64_t>(end) - piece.begin;
  const std::uint64_t first = std::max(reading.next_word, from / kWordBytes);
  const std::uint64_t last = (to + kWordBytes - 1) / kWordBytes;
  if (first >= last) return;
  const std::uint64_t whole = std::min(last, piece.bytes / kWordBytes);
  AddWholeWords(reading, first, whole);
  if (whole < last) AddLastWord(reading, whole);
  reading.next_word = last;
}

void Compare(const Launch& launch, const Piece& piece, HostRecord& result) {
  result.differs = 0;
  if (piece.expected == fingerprint_kernel::kNone) return;
  auto* const records = At<DeviceRecord>(launch.device_records);
  const std::uint64_t(&expected)[2] = records[piece.expected].words;
  if (std::memcmp(expected, result.words, sizeof expected) == 0) return;
  result.differs = 1;
  At<HostRecord>(launch.host_records)->mismatches = ++records->mismatches;
}

void RunPiece(const Launch& launch, const Piece& piece) {
  Reading reading{launch, piece};
  services->for_written(At<const void>(piece.begin), piece.bytes, AddPart, &reading);
  HostRecord& result = At<HostRecord>(launch.host_records)[piece.to];
  for (int lane = 0; lane < 2; ++lane)
    result.words[lane] =
        fingerprint_kernel::Finish(launch.key.lanes[lane], reading.sums[lane], piece.bytes);
  Compare(launch, piece, result);
  DeviceRecord& record = At<DeviceRecord>(launch.device_records)[piece.to];
  std::memcpy(record.words, result.words, sizeof record.words);
}

void Run(const LaunchShape&, void* const* arguments) {
  const Launch& launch = LaunchOf(arguments);
  for (std::uint32_t i = 0; i < launch.piece_count; ++i) RunPiece(launch, launch.pieces[i]);
}

// Its arithmetic fits beside its reads.
KernelCost Cost(const LaunchShape&, void* const* arguments) {
  const Launch& launch = LaunchOf(arguments);
  KernelCost cost{0, launch.piece_count * sizeof(HostRecord)};
  for (std::uint32_t i = 0; i < launch.piece_count; ++i)
    cost.device_bytes += launch.pieces[i].bytes;
  return cost;
}

void Uses(const LaunchShape&, void* const* arguments, KernelUseList* list) {
  static_assert(fingerprint_kernel::kMostPieces < KernelUseList::kMost);
  const Launch& launch = LaunchOf(arguments);
  for (std::uint32_t i = 0; i < launch.piece_count; ++i) {
    const Piece& piece = launch.pieces[i];
    list->uses[list->count++] = {At<void>(piece.begin), piece.bytes, UseKind::kRead};
  }
  list->uses[list->count++] = {At<void>(launch.host_records),
                               launch.piece_count * sizeof(HostRecord), UseKind::kWrite};
}

constexpr KernelParameter kParameters[] = {{0, sizeof(Launch)}};
constexpr KernelEntry kKernel = {fingerprint_kernel::kName, Run, Cost, 1, kParameters};
constexpr KernelUses kUses = Uses;

void UseServices(const DriverServices& offered) { services = &offered; }

}  // namespace

extern "C" __attribute__((visibility("default"))) const Image* spillway_sim_image() {
  static constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
                                   kImageVersionWithServices,
                                   1,
                                   &kKernel,
                                   0,
                                   nullptr,
                                   &kUses,
                                   UseServices};
  return &kImage;
}

}  // namespace spillway::simulator
