// Messages to frames and back. Every field of a frame is checked; what passes is a valid message,
// what does not has a reason.
//
// Pure functions, any thread; nothing is allocated, nothing thrown.
//
// Layout of a frame: magic "SPWY", version (2 bytes), kind (2), size in bytes (4, always
// kFrameBytes), reserved (4, zero), then the kind's fields in the order of message.h, each at the
// next byte, little-endian; the rest is zero.
//
// Invariants
//  1. Decode(Encode(m)) is m for every message whose fields are in range; Encode(Decode(f)) is f
//  for every frame of our own
//     version that decodes.
//  2. Decode reads nothing beyond the frame, whatever its bytes.
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
  kSize,      // not a whole frame
  kMagic,     // not our protocol
  kVersion,   // a version that we do not speak
  kKind,      // no such message
  kField,     // a field outside its range
  kLeftover,  // something where zeros belong
};

struct Decoded {
  std::optional<Message> message;
  Fault fault = Fault::kNone;
};

// `version`: what the session has agreed upon.
Frame Encode(const Message& message, uint16_t version = kNewestVersion);
// `size`: how many bytes came; a frame is exactly kFrameBytes.
Decoded Decode(const uint8_t* bytes, size_t size);

const char* NameOf(Fault fault);
const char* NameOf(const Message& message);

}  // namespace spillway::protocol
