#include "simulator/driver/machine/node_settings.h"

#include <cstdio>
#include <cstdlib>

#include "base/environment.h"

namespace spillway::simulator {
namespace {

// "2/4": the second of four.
bool ReadSlot(const char* text, int& slot, int& slots) {
  char rest = 0;
  if (std::sscanf(text, "%d/%d%c", &slot, &slots, &rest) != 2) return false;
  return slot >= 1 && slot <= slots && slots <= node::kMostSlots;
}

}  // namespace

node::LinkRates LinkRatesOf(const Profile& profile) {
  return {profile.h2d_bytes_per_second, profile.d2h_bytes_per_second,
          profile.h2d_both_bytes_per_second, profile.d2h_both_bytes_per_second};
}

base::Result<std::unique_ptr<Node>> JoinNode(Machine machine, bool shares_time) {
  const char* path = std::getenv(environment::kSimNode);
  if (path == nullptr || *path == '\0') return std::unique_ptr<Node>();
  NodeSettings settings;
  settings.path = path;
  settings.shares_time = shares_time;
  const char* slot = std::getenv(environment::kSimSlot);
  if (slot != nullptr && *slot != '\0' && !ReadSlot(slot, settings.slot, machine.reserved_slots))
    return base::Error{std::string(environment::kSimSlot) + " is not a slot, such as 2/4: '" +
                       slot + "'"};
  base::Result<std::unique_ptr<Node>> joined = Node::Join(settings, machine);
  if (!joined) return base::Status(joined.error()).Annotate(settings.path);
  return joined;
}

}  // namespace spillway::simulator
