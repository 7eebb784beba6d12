// The kernel that fingerprints memory (base/fingerprint_kernel.h), for the CPU.
//
// A GPU's blocks are loops over a piece's words here, and memory that was never written is skipped:
// zeros add nothing. The kernel itself may run on the simulated GPU, too (tools/simkernels), but
// reads every byte.
// Threads: as all bodies (simulator/kernels/image.h). Never: allocates.
#include "base/fingerprint_kernel.h"

#include <algorithm>
#include <cstring>

#include "simulator/kernels/image.h"

namespace spillway::simulator {
namespace {

using fingerprint_kernel::DeviceRecord;
using fingerprint_kernel::HostRecord;
using fingerprint_kernel::kWordBytes;
using fingerprint_kernel::Launch;
using fingerprint_kernel::Piece;
using fingerprint_kernel::WordSums;

const DriverServices* services = nullptr;

const Launch& LaunchOf(void* const* arguments) { return *static_cast<const Launch*>(arguments[0]); }

template <class T>
T* At(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

// One piece while its parts are visited in ascending order.
struct Reading {
  const Launch& launch;
  const Piece& piece;
  std::uint64_t next_word = 0;
  std::uint64_t sums[2] = {0, 0};
};

void AddWord(const Piece& piece, std::uint64_t i, WordSums& sums) {
  std::uint64_t word[2] = {0, 0};
  const std::uint64_t rest_bytes = piece.bytes - i * kWordBytes;
  const auto* const from = At<const char>(piece.begin + i * kWordBytes);
  if (rest_bytes >= kWordBytes)
    std::memcpy(word, from, kWordBytes);
  else
    std::memcpy(word, from, rest_bytes);
  sums.Add(word[0], word[1]);
}

// A word may lie in two parts: it is added once.
void AddPart(void* context, const void* begin, const void* end) {
  Reading& reading = *static_cast<Reading*>(context);
  const Piece& piece = reading.piece;
  const std::uint64_t from = reinterpret_cast<std::uint64_t>(begin) - piece.begin;
  const std::uint64_t to = reinterpret_cast<std::uint64_t>(end) - piece.begin;
  std::uint64_t i = std::max(reading.next_word, from / kWordBytes);
  const std::uint64_t last = (to + kWordBytes - 1) / kWordBytes;
  WordSums sums(reading.launch.key, i, 1);
  for (; i < last; ++i) AddWord(piece, i, sums);
  reading.next_word = i;
  for (int lane = 0; lane < 2; ++lane) reading.sums[lane] += sums.sum(lane);
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
