#include "interposer/execute/residency/link_turns.h"

#include <sys/stat.h>

#include <algorithm>

namespace spillway::interposer {

using protocol::Direction;

namespace {

// Reading a mapping beyond the file's end faults.
bool IsLargeEnough(int file, std::size_t bytes) {
  struct stat facts;
  return fstat(file, &facts) == 0 && facts.st_size >= static_cast<off_t>(bytes);
}

}  // namespace

bool LinkTurns::Join(int terms_file, int lanes_file, std::uint32_t layout, std::uint32_t slot) {
  if (layout != protocol::kLinkLayout || slot >= protocol::kLinkSlots) return false;
  if (!IsLargeEnough(terms_file, sizeof(protocol::LinkTerms)) ||
      !IsLargeEnough(lanes_file, sizeof(protocol::LinkLanes)))
    return false;
  base::Mapping terms(terms_file, sizeof(protocol::LinkTerms), PROT_READ);
  base::Mapping lanes(lanes_file, sizeof(protocol::LinkLanes));
  if (!terms || !lanes) return false;
  place_ = std::make_unique<Place>(std::move(terms), std::move(lanes), slot);
  owed_bytes_ = asked_bytes_ = {};
  return true;
}

bool LinkTurns::IsAlone() const {
  const auto& terms = place_->terms.As<protocol::LinkTerms>();
  return terms.total_weight.load(std::memory_order_relaxed) <=
         terms.weights[place_->slot].load(std::memory_order_relaxed);
}

std::int64_t LinkTurns::WaitForTurn(Direction direction) {
  std::int64_t& owed_bytes = owed_bytes_[Index(direction)];
  std::int64_t& asked_bytes = asked_bytes_[Index(direction)];
  if (IsAlone()) {
    if (asked_bytes > 0) place_->turn.Withdraw(direction);
    owed_bytes = asked_bytes = 0;
  }
  while (owed_bytes > 0) {
    // A piece stays the same until it has had its turn.
    if (asked_bytes == 0) asked_bytes = std::min(owed_bytes, protocol::LinkTurn::kMostBytes);
    const auto now_ns = static_cast<std::int64_t>(clock_());
    const std::int64_t wait_ns = place_->turn.Ask(direction, asked_bytes, now_ns);
    if (wait_ns > 0) return wait_ns;
    owed_bytes -= asked_bytes;
    asked_bytes = 0;
  }
  return 0;
}

}  // namespace spillway::interposer
