#include "simulator/driver/machine/node_settings.h"

#include <cstdio>
#include <cstdlib>

#include "base/environment.h"

namespace spillway::simulator {
namespace {

// "2/4": the second of four.
bool ReadSeat(const char* text, int& seat, int& seats) {
  char rest = 0;
  if (std::sscanf(text, "%d/%d%c", &seat, &seats, &rest) != 2) return false;
  return seat >= 1 && seat <= seats && seats <= node::kMostSeats;
}

}  // namespace

node::LinkRates LinkRatesOf(const Profile& profile) {
  return {profile.h2d_bytes_per_second, profile.d2h_bytes_per_second, profile.h2d_both_bytes_per_second,
          profile.d2h_both_bytes_per_second};
}

base::Result<std::unique_ptr<Node>> JoinNode(Machine machine, bool shares_time) {
  const char* path = std::getenv(environment::kSimNode);
  if (path == nullptr || *path == '\0') return std::unique_ptr<Node>();
  NodeSettings settings;
  settings.path = path;
  settings.shares_time = shares_time;
  const char* seat = std::getenv(environment::kSimSeat);
  if (seat != nullptr && *seat != '\0' && !ReadSeat(seat, settings.seat, machine.reserved_seats))
    return base::Error{std::string(environment::kSimSeat) + " is not a seat, such as 2/4: '" + seat + "'"};
  base::Result<std::unique_ptr<Node>> joined = Node::Join(settings, machine);
  if (!joined) return base::Status(joined.error()).Annotate(settings.path);
  return joined;
}

}  // namespace spillway::simulator
