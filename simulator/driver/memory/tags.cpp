#include "simulator/driver/memory/tags.h"

#include <algorithm>
#include <cstring>

#include "simulator/driver/memory/sparse_bytes.h"

namespace spillway::simulator {
namespace {

constexpr std::uint64_t kStride = std::uint64_t{2} << 20;
// A place holds one tag per interleaved part.
constexpr std::uint64_t kWordBytes = 8;
constexpr std::uint64_t kPlaceBytes = 4 * kWordBytes;

std::uint64_t Mix(std::uint64_t hash, std::uint64_t word) {
  hash ^= word + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccd;
  return hash ^ (hash >> 32);
}

std::uint64_t MixText(std::uint64_t hash, const char* text) {
  for (; *text != '\0'; ++text) hash = Mix(hash, static_cast<unsigned char>(*text));
  return hash;
}

template <class Action>
void ForPlaces(const KernelUse& use, Action action) {
  if (use.pointer == nullptr || use.size_bytes == 0) return;
  auto* const bytes = static_cast<unsigned char*>(use.pointer);
  std::uint64_t number = 0;
  std::uint64_t end = 0;
  for (std::uint64_t offset = 0; offset < use.size_bytes; offset += kStride) {
    end = std::min(offset + kPlaceBytes, use.size_bytes);
    action(bytes + offset, end - offset, number++);
  }
  if (use.size_bytes - end >= kWordBytes)
    action(bytes + use.size_bytes - kWordBytes, kWordBytes, number);
  else if (use.size_bytes > end)
    action(bytes + end, use.size_bytes - end, number);
}

// Clears the sign and the highest bit of the exponent of whatever number type a program reads.
constexpr std::uint64_t kFiniteMask = 0x3fff3fff3fff3fff;

bool IsRead(const KernelUse& use) {
  return use.kind == UseKind::kRead || use.kind == UseKind::kUpdate;
}

std::uint64_t MixOperand(std::uint64_t hash, const KernelUse& use) {
  hash = Mix(hash, use.size_bytes);
  ForPlaces(use, [&](const unsigned char* place, std::uint64_t size_bytes, std::uint64_t) {
    std::uint64_t words[kPlaceBytes / kWordBytes] = {};
    std::memcpy(words, place, size_bytes);
    for (const std::uint64_t word : words) hash = Mix(hash, word);
  });
  return hash;
}

void Fill(const KernelUse& use) {
  if (use.pointer == nullptr) return;
  const auto byte = static_cast<int>(use.part);
  if (byte == 0)
    SparseClear(use.pointer, use.size_bytes);
  else
    std::memset(use.pointer, byte, use.size_bytes);
  // Unmapped memory faults also where nothing had to be cleared.
  ForPlaces(use, [&](unsigned char* place, std::uint64_t size_bytes, std::uint64_t) {
    std::memset(place, byte, size_bytes);
  });
}

void WriteOperand(std::uint64_t hash, const KernelUse& use) {
  if (use.kind == UseKind::kFill) return Fill(use);
  // The old bytes depend on how memory was reused, and a program may read each byte that it wrote.
  const bool is_whole =
      use.kind == UseKind::kWrite || (use.kind == UseKind::kPart && use.parts == 1);
  if (is_whole && use.pointer != nullptr) SparseClear(use.pointer, use.size_bytes);
  ForPlaces(use, [&](unsigned char* place, std::uint64_t size_bytes, std::uint64_t number) {
    const std::uint64_t tag = Mix(hash, number) & kFiniteMask;
    const std::uint64_t cleared_from = use.kind == UseKind::kPart ? use.parts * kWordBytes : 0;
    if (cleared_from < size_bytes) std::memset(place + cleared_from, 0, size_bytes - cleared_from);
    const std::uint64_t offset = use.kind == UseKind::kPart ? use.part * kWordBytes : 0;
    if (offset < size_bytes)
      std::memcpy(place + offset, &tag, std::min(kWordBytes, size_bytes - offset));
  });
}

}  // namespace

void WriteTags(const char* kernel_name, std::uint64_t identity, std::span<const KernelUse> uses) {
  std::uint64_t hash = MixText(identity, kernel_name);
  for (const KernelUse& use : uses) {
    if (IsRead(use)) hash = MixOperand(hash, use);
  }
  std::uint64_t number = 0;
  for (const KernelUse& use : uses) {
    const std::uint64_t own_hash = use.kind == UseKind::kClobbers ? MixOperand(hash, use) : hash;
    if (use.kind != UseKind::kRead) WriteOperand(Mix(own_hash, number), use);
    ++number;
  }
}

std::uint64_t BytesMoved(std::span<const KernelUse> uses) {
  std::uint64_t bytes = 0;
  for (const KernelUse& use : uses) {
    const bool is_moved_twice = use.kind == UseKind::kUpdate || use.kind == UseKind::kClobbers;
    if (use.pointer != nullptr) bytes += is_moved_twice ? 2 * use.size_bytes : use.size_bytes;
  }
  return bytes;
}

}  // namespace spillway::simulator
