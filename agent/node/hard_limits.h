// The driver's hard limits on the control groups of jobs (driver r615), as the node asks for them.
// The daemon sets them on a thread of its own: NVML may be slow, or hang.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>

namespace spillway::agent {

// A control group on one device.
struct LimitPlace {
  std::string uuid, group;
  auto operator<=>(const LimitPlace&) const = default;
};

enum class LimitState : uint8_t {
  kPending,
  kSet,
  kForeign,  // somebody else set one, which stays
  kRefused,  // by the driver
  kCleared   // of late: counts of the driver's may still show it
};

inline constexpr size_t kLimitStates = 5;
inline constexpr const char* kLimitStateNames[kLimitStates] = {"pending", "set", "foreign",
                                                               "refused", "cleared"};

struct LimitView {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  LimitState state = LimitState::kPending;
  int64_t hard_bytes = kNone;  // in force, if it is ours
  bool operator==(const LimitView&) const = default;
};

using WantedLimits = std::map<LimitPlace, int64_t>;  // in bytes
using LimitViews = std::map<LimitPlace, LimitView>;

// Neither call waits.
class HardLimits {
 public:
  virtual ~HardLimits() = default;
  // All of them; others that the agent set are cleared.
  virtual void Want(const WantedLimits& limits) = 0;
  // Never null.
  virtual std::shared_ptr<const LimitViews> Views() const = 0;
};

}  // namespace spillway::agent
