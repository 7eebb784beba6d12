// A job's terms on one device, and the ids that the agent's modules share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace spillway::agent {

enum class JobId : uint64_t {};
enum class SessionId : uint64_t {};
enum class DeviceId : uint32_t {};
enum class OwnerId : uint64_t {};  // of jobs: a user, or an account of several users

inline constexpr OwnerId kNobody{0};

inline constexpr int64_t kWholeLink = 1000;  // shares of the link are thousandths

// Whether a job takes turns on a device with others that do not fit beside it.
enum class TurnsChoice : uint8_t {
  kNever,
  kAuto,    // where sharing the memory costs more time than turns
  kAlways,  // as soon as they do not fit
};

struct Share {
  int64_t floor = 0;       // the job cannot run with less
  int64_t guaranteed = 0;  // not lent while the job wants it
  int64_t limit = 0;
  bool operator==(const Share&) const = default;
};

struct Terms {
  Share memory;                                                   // bytes
  Share host;                                                     // bytes, pinned
  Share link;                                                     // thousandths, each direction
  int64_t workspace_limit = std::numeric_limits<int64_t>::max();  // bytes of one workspace
  int32_t weight = 1;
  int32_t priority = 0;
  OwnerId owner = kNobody;
  std::optional<TurnsChoice> turns = {};  // nothing: the device's
  bool operator==(const Terms&) const = default;
};

// A size is bytes or, if negative, millionths of a device's or the node's host memory.
inline constexpr int64_t kWholeInMillionths = 1'000'000;
constexpr int64_t BytesOf(int64_t size, int64_t whole_bytes) {
  if (size >= 0) return size;
  return static_cast<int64_t>(static_cast<__int128>(whole_bytes) * -size / kWholeInMillionths);
}

// The bounds of all jobs of a user or account together. Sizes apply to each device (a share: of
// that device). `host_limit_bytes` applies to the node.
struct OwnerTerms {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

  OwnerId above = kNobody;  // the account of a user
  int64_t guaranteed_bytes = 0, limit_bytes = kAny;
  int64_t host_limit_bytes = kAny;
  int32_t weight = 1;   // beside other users, or accounts
  int64_t jobs = kAny;  // that run at once
  bool operator==(const OwnerTerms&) const = default;

  int64_t LimitOn(int64_t device_bytes) const { return BytesOf(limit_bytes, device_bytes); }
  int64_t GuaranteedOn(int64_t device_bytes) const {
    return std::min(BytesOf(guaranteed_bytes, device_bytes), LimitOn(device_bytes));
  }
};

}  // namespace spillway::agent
