// A fat binary: nvcc's container of a module's code, an entry per architecture.
//
// nvcc's generated code passes a wrapper that leads to the container; files hold the container
// itself. All its entries have one source, so each has the same kernels, parameters and variables.
//
// Source of the wrapper: fatbinary_section.h. Of the headers: nvcc's files, and public readers of
// them.
#pragma once

#include <cstdint>

#include "base/byte_view.h"

namespace spillway::base {

inline constexpr std::uint32_t kFatWrapperMagic = 0x466243b1;  // __fatBinC_Wrapper_t
inline constexpr std::uint32_t kFatContainerMagic = 0xba55ed50;

struct FatEntry {
  enum Kind : std::uint16_t { kPtx = 1, kCodeObject = 2 };
  enum Flag : std::uint64_t { kLz4 = 0x2000, kZstd = 0x8000 };

  std::uint16_t kind = 0;
  std::uint32_t architecture = 0;  // 90 for sm_90 and compute_90
  std::uint64_t flags = 0;
  std::uint64_t original_bytes = 0;  // of a compressed payload
  ByteView payload;                  // without the padding behind compressed data

  bool IsCompressed() const { return (flags & (kLz4 | kZstd)) != 0; }
};

// The container behind `image` if that is a wrapper, else `image`. It is read up to the wrapper's
// length only if its first bytes say that it is one.
inline const void* Unwrapped(const void* image) {
  const char* bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes, &kFatWrapperMagic, sizeof kFatWrapperMagic) != 0) return image;
  const void* container = nullptr;
  std::memcpy(&container, bytes + 2 * sizeof(std::uint32_t), sizeof container);
  return container;
}

class FatContainer {
 public:
  static constexpr std::size_t kLeastBytes = 16;

  explicit FatContainer(ByteView bytes) : bytes_(bytes) {}

  bool IsOne() const {
    return bytes_.Holds(0, kLeastBytes) && bytes_.Read<std::uint32_t>(0) == kFatContainerMagic;
  }
  // By the container's header; the bytes may end before. Zero for impossible lengths.
  std::size_t LengthByHeader() const {
    const std::size_t header = HeaderBytes(), payload = bytes_.Read<std::uint64_t>(8);
    return header < kLeastBytes || payload > SIZE_MAX - header ? 0 : header + payload;
  }
  // False, after the readable entries, if one does not fit.
  template <class Action>
  bool ForEntries(Action action) const {
    const std::size_t end = LengthByHeader();
    if (end == 0 || !bytes_.Holds(0, end)) return false;
    const ByteView whole = bytes_.Part(0, end);
    for (std::size_t at = HeaderBytes(); at < end;) {
      const std::size_t header_bytes = whole.Read<std::uint32_t>(at + 4);
      const std::size_t payload_bytes = whole.Read<std::uint64_t>(at + 8);
      const bool fits = header_bytes >= kLeastBytes && whole.Holds(at, header_bytes) &&
                        whole.Holds(at + header_bytes, payload_bytes);
      if (!fits) return false;
      action(EntryOf(whole.Part(at, header_bytes), whole.Part(at + header_bytes, payload_bytes)));
      at += header_bytes + payload_bytes;
    }
    return true;
  }

 private:
  std::size_t HeaderBytes() const { return bytes_.Read<std::uint16_t>(6); }
  static FatEntry EntryOf(ByteView header, ByteView payload) {
    FatEntry entry{header.Read<std::uint16_t>(0), header.Read<std::uint32_t>(28),
                   header.Read<std::uint64_t>(40), header.Read<std::uint64_t>(56), payload};
    const std::size_t compressed_bytes = header.Read<std::uint32_t>(16);
    if (entry.IsCompressed()) entry.payload = payload.Part(0, compressed_bytes);
    return entry;
  }

  const ByteView bytes_;
};

}  // namespace spillway::base
