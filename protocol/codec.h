// Encodes messages as frames and decodes them, checking every field.
//
// Frame layout: magic "SPWY", version (2 bytes), kind (2), size in bytes (4, always kFrameBytes),
// reserved (4, zero). The kind's fields follow in message.h's order, packed, little-endian. The
// rest is zero.
//
// Invariants
//  1. Decode(Encode(m)) is m for every message with fields in range. Encode(Decode(f)) is f for
//     every frame of our version that decodes.
//  2. Decode never reads beyond the frame.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "protocol/message.h"

namespace spillway::protocol {

inline constexpr size_t kFrameBytes = 256;
inline constexpr size_t kHeaderBytes = 16;

using Frame = std::array<uint8_t, kFrameBytes>;

enum class Fault : uint8_t {
  kNone,
  kSize,
  kMagic,
  kVersion,
  kKind,
  kField,
  kLeftover,  // nonzero bytes after the last field, or in the reserved ones
};

struct Decoded {
  std::optional<Message> message;
  Fault fault = Fault::kNone;
};

Frame Encode(const Message& message, uint16_t version = kNewestVersion);
Decoded Decode(const uint8_t* bytes, size_t size);

const char* NameOf(Fault fault);
const char* NameOf(const Message& message);

}  // namespace spillway::protocol
