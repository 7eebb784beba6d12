// Scans parameters for device addresses. A mistaken integer only enlarges the resident set.
//
// `add(word)` is called for each word.
#pragma once

#include <cstring>

#include "interposer/entry/kernel_parameters.h"
#include "interposer/execute/state/launch_call.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/tensor_maps.h"

namespace spillway::entry {

// An aligned address lies at a multiple of eight bytes. In a packed struct, behind a 32-bit member,
// it lies at a multiple of four. Tighter packing nearly always shows in a size that is no multiple
// of four. A parameter of one word costs one step.
inline size_t StepBytes(size_t size_bytes) {
  return size_bytes % 4 == 0 || !interposer::ordering_rules::kPackedWordsAreFound ? 4 : 1;
}

template <class Add>
void ScanWords(const void* data, size_t size_bytes, Add& add) {
  const char* bytes = static_cast<const char*>(data);
  const size_t step_bytes = StepBytes(size_bytes);
  for (size_t offset = 0; offset + sizeof(CUdeviceptr) <= size_bytes; offset += step_bytes) {
    CUdeviceptr word;
    std::memcpy(&word, bytes + offset, sizeof word);
    add(word);
  }
  // A tensor map's alignment puts it at a multiple of 64, in structs and in packed buffers.
  interposer::ForEachTensorMap(data, size_bytes, 0,
                               [&](size_t, CUdeviceptr address) { add(address); });
}

inline constexpr std::uint32_t kHalfBytes = 4;

// Two neighbouring 32-bit parameters may be the halves of an address, the lower one first.
template <class Add>
void AddHalves(const void* lower, const void* upper, Add& add) {
  std::uint32_t halves[2];
  std::memcpy(&halves[0], lower, sizeof halves[0]);
  std::memcpy(&halves[1], upper, sizeof halves[1]);
  add(CUdeviceptr{halves[1]} << 32 | halves[0]);
}

struct Grid {
  unsigned x, y;
};

// What the launch itself says of the struct. (ReadStruct)
inline std::uint32_t CountFor(const KernelParameters& layout, void** parameters, Grid grid) {
  std::uint32_t elements = 0;
  if (layout.by_value.kind != ByValue::kElementwise) return grid.y;
  if (layout.size_bytes[0] == sizeof elements)
    std::memcpy(&elements, parameters[0], sizeof elements);
  return elements;
}

template <class Add>
void ScanAround(const Parts& parts, const char* data, size_t size_bytes, Add& add) {
  size_t at = 0;
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::kHostPointer) continue;
    ScanWords(data + at, part.offset - at, add);
    at = part.offset + part.bytes;
  }
  ScanWords(data + at, size_bytes - at, add);
}

// Whether the parameter is a known struct, and all of its addresses that count were added.
template <class Add>
bool ScanKnown(const KernelParameters& layout, std::uint32_t i, void** parameters, Grid grid,
               Add& add, interposer::UnreadParts* unread) {
  const std::uint32_t size_bytes = layout.size_bytes[i];
  if (i == 0 && layout.lists.kind != TensorLists::Kind::kNone)
    return ScanTensorLists(layout.lists, parameters[i], size_bytes, grid.x, add);
  const ByValue kind = layout.by_value.kind;
  if (kind == ByValue::kNone || i != ParameterOf(kind)) return false;
  const auto parts =
      ReadStruct(layout.by_value, parameters[i], size_bytes, CountFor(layout, parameters, grid));
  if (!parts) return false;
  ScanAround(*parts, static_cast<const char*>(parameters[i]), size_bytes, add);
  for (const Part& part : *parts) {
    if (unread && part.kind != Part::Kind::kNumbers)
      unread->push_back({i, part.offset, part.bytes, part.kind == Part::Kind::kHostPointer});
  }
  return true;
}

template <class Add>
[[gnu::noinline]] void ScanOthers(const KernelParameters& layout, void** parameters, Grid grid,
                                  Add& add, interposer::UnreadParts* unread) {
  const auto is_half = [&](std::uint32_t i) { return layout.size_bytes[i] == kHalfBytes; };
  for (const std::uint32_t i : layout.others) {
    const std::uint32_t bytes = layout.size_bytes[i];
    if (ScanKnown(layout, i, parameters, grid, add, unread)) continue;
    if (bytes > sizeof(CUdeviceptr)) ScanWords(parameters[i], bytes, add);
    if (i > 0 && is_half(i) && is_half(i - 1) && interposer::ordering_rules::kHalvesAreJoined)
      AddHalves(parameters[i - 1], parameters[i], add);
  }
}

// Most parameters are one word: these come first, in the tightest loop. `unread`, if given, gets
// what the kernel does not read.
template <class Add>
void ScanParameters(const KernelParameters& layout, void** parameters, Grid grid, Add& add,
                    interposer::UnreadParts* unread = nullptr) {
  for (const std::uint32_t i : layout.words) {
    CUdeviceptr word;
    std::memcpy(&word, parameters[i], sizeof word);
    add(word);
  }
  if (!layout.others.empty()) ScanOthers(layout, parameters, grid, add, unread);
}

// Its size says nothing of the structs in it.
template <class Add>
void ScanBuffer(const KernelParameters& layout, const void* buffer, size_t size_bytes, Add& add) {
  ScanWords(buffer, size_bytes, add);
  for (size_t i = 0; i < layout.size_bytes.size(); ++i) {
    const size_t offset = layout.offset_bytes[i], bytes = layout.size_bytes[i];
    const bool is_packed = bytes > sizeof(CUdeviceptr) && StepBytes(bytes) == 1;
    if (is_packed && offset + bytes <= size_bytes)
      ScanWords(static_cast<const char*>(buffer) + offset, bytes, add);
  }
}

// The `extra` form: one packed buffer (cuda.h, CU_LAUNCH_PARAM_*).
template <class Add>
void ScanExtra(const KernelParameters& layout, void** extra, Add& add) {
  const void* buffer = nullptr;
  size_t size_bytes = 0;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      size_bytes = *static_cast<const size_t*>(extra[i + 1]);
  }
  if (buffer) ScanBuffer(layout, buffer, size_bytes, add);
}

}  // namespace spillway::entry
