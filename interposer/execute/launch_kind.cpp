#include "interposer/execute/launch_kind.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "interposer/driver/driver_api.h"
#include "scheduler/learn/job_event.h"

namespace spillway::interposer {
namespace {

std::uint64_t TokenOf(const CallShape& shape, std::uint32_t stream_number,
                      const NamedMemory& memory) {
  std::uint64_t sizes = 0;
  for (const Tracked* each : memory) {
    if (!IsBlock(each)) sizes = AddSize(sizes, each->size_bytes);
  }
  const Shape whole = ShapeOnStream(shape.Mixed(), stream_number, sizes);
  return scheduler::TokenOf(scheduler::JobEvent::Operation(whole, {}));
}

struct Word {
  CUdeviceptr value = 0;
  bool is_host_pointer = false;
};

Word WordAt(const LaunchCall& launch, std::size_t parameter, std::size_t at) {
  const std::size_t bytes = launch.parameter_bytes[parameter];
  Word word;
  std::memcpy(&word.value, static_cast<const unsigned char*>(launch.parameters[parameter]) + at,
              std::min(sizeof word.value, bytes - at));
  for (const UnreadBytes& unread : launch.unread) {
    const std::size_t begin = std::max<std::size_t>(unread.offset, at);
    const std::size_t end =
        std::min<std::size_t>(unread.offset + unread.bytes, at + sizeof word.value);
    if (unread.parameter != parameter || begin >= end) continue;
    if (unread.is_host_pointer)
      word.is_host_pointer = true;
    else
      std::memset(reinterpret_cast<unsigned char*>(&word.value) + (begin - at), 0, end - begin);
  }
  return word;
}

// An address counts by which allocation it leads to, and where.
std::uint64_t MixWord(std::uint64_t mixed, Word word, const NamedMemory& memory,
                      const Ledger& ledger) {
  const Allocation* const found =
      ledger.MightBeManaged(word.value) ? ledger.Find(word.value) : nullptr;
  const auto at = std::find(memory.begin(), memory.end(), found);
  if (!found || at == memory.end()) return MixShape(mixed, word.is_host_pointer ? 0 : word.value);
  return MixShape(MixShape(mixed, static_cast<std::uint64_t>(at - memory.begin())),
                  word.value - found->base);
}

std::uint64_t MixParameter(std::uint64_t mixed, const LaunchCall& launch, std::size_t parameter,
                           const NamedMemory& memory, const Ledger& ledger) {
  const std::size_t bytes = launch.parameter_bytes[parameter];
  for (std::size_t at = 0; at < bytes; at += sizeof(CUdeviceptr))
    mixed = MixWord(mixed, WordAt(launch, parameter, at), memory, ledger);
  return MixShape(mixed, bytes);
}

bool IsShared(const SlabBlock& block) {
  return std::any_of(block.slab->chunks.begin(), block.slab->chunks.end(),
                     [](const Chunk* chunk) { return chunk->is_shared; });
}

bool MayBeOthers(CUdeviceptr word, const Ledger& ledger) {
  constexpr CUdeviceptr kLeast = CUdeviceptr{1} << 32,
                        kEnd = CUdeviceptr{1} << 57;  // beyond these a word is no address
  return word >= kLeast && word < kEnd && !ledger.MightBeManaged(word);
}

}  // namespace

std::optional<NamedMemory> MemoryNamedBy(const Addresses& addresses, const Ledger& ledger) {
  NamedMemory memory;
  for (const CUdeviceptr address : addresses) {
    auto* const found = static_cast<Tracked*>(ledger.Find(address));
    if (!found && ledger.LeadsToAny(address)) return std::nullopt;
    const bool is_part = found && !IsBlock(found) && AsRange(found)->part_place != PartPlace::kNone;
    if (is_part) return std::nullopt;  // nobody knows how much of it and its neighbours is meant
    if (found && std::find(memory.begin(), memory.end(), found) == memory.end())
      memory.push_back(found);
  }
  return memory;
}

LaunchKind KindOf(const CallShape& shape, const LaunchCall& launch, std::uint32_t stream_number,
                  const NamedMemory& memory, const Ledger& ledger) {
  LaunchKind kind;
  kind.token = TokenOf(shape, stream_number, memory);
  kind.family = MixShape(kind.token, reinterpret_cast<std::uintptr_t>(launch.function));
  kind.exact = kind.family;
  for (const Tracked* each : memory) kind.exact = MixShape(kind.exact, each->requested_bytes);
  for (std::size_t i = 0; i < launch.parameter_bytes.size(); ++i)
    kind.exact = MixParameter(kind.exact, launch, i, memory, ledger);
  return kind;
}

bool LeadsElsewhere(const RecordedLaunch& launch, const Ledger& ledger) {
  return launch.AnyWord([&ledger](CUdeviceptr word) {
    unsigned int type = 0;
    return MayBeOthers(word, ledger) &&
           driver::Driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) ==
               CUDA_SUCCESS;
  });
}

bool LeadsToPageable(const RecordedLaunch& launch, const Ledger& ledger) {
  static const auto page_bytes = static_cast<CUdeviceptr>(sysconf(_SC_PAGESIZE));
  return launch.AnyWord([&ledger](CUdeviceptr word) {
    unsigned char is_in_core = 0;  // mincore fails where nothing is mapped
    return MayBeOthers(word, ledger) &&
           mincore(reinterpret_cast<void*>(word & ~(page_bytes - 1)), 1, &is_in_core) == 0;
  });
}

bool IsUsedByName(const Tracked& memory, int pins) {
  if (memory.free_is_due) return false;
  if (IsBlock(&memory)) return !IsShared(static_cast<const SlabBlock&>(memory));
  const auto& range = static_cast<const Range&>(memory);
  return range.live && range.unmovable == Unmovable::kNo && range.holds == 0 && range.pins == pins;
}

}  // namespace spillway::interposer
