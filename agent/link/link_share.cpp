#include "agent/link/link_share.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "protocol/link_turn.h"

namespace spillway::agent {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int64_t kAhead_ns = 1'000'000;
constexpr int64_t kLongestWait_ns = 1'000'000'000;

base::UniqueFd MakeFile(const char* name, size_t size_bytes) {
  base::UniqueFd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0) return {};
  if (fcntl(file.get(), F_ADD_SEALS, kSizeSeals) != 0) return {};
  return file;
}

// The same memory, read-only. Existing mappings stay writable.
base::UniqueFd ForReading(int file) {
  if (fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) return {};
  return base::UniqueFd(
      open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

LinkShare::LinkShare(base::UniqueFd terms_file, base::UniqueFd lanes_file)
    : lanes_file_(std::move(lanes_file)),
      terms_memory_(terms_file.get(), sizeof(protocol::LinkTerms)),
      lanes_memory_(lanes_file_.get(), sizeof(protocol::LinkLanes)) {
  terms_for_clients_ = ForReading(terms_file.get());
  // Otherwise a client could seal the lanes against later clients.
  fcntl(lanes_file_.get(), F_ADD_SEALS, F_SEAL_SEAL);
}

std::optional<LinkShare> LinkShare::Make(const LinkRates& rates) {
  base::UniqueFd terms_file = MakeFile("spillway-link-terms", sizeof(protocol::LinkTerms));
  base::UniqueFd lanes_file = MakeFile("spillway-link-lanes", sizeof(protocol::LinkLanes));
  if (!terms_file || !lanes_file) return std::nullopt;
  LinkShare share(std::move(terms_file), std::move(lanes_file));
  if (!share.terms_memory_ || !share.lanes_memory_ || !share.terms_for_clients_)
    return std::nullopt;
  share.terms().layout = protocol::kLinkLayout;
  share.terms().ahead_ns = kAhead_ns;
  share.SetRates(rates);
  return share;
}

std::optional<uint32_t> LinkShare::Join(uint32_t weight) {
  for (uint32_t slot = 0; slot < protocol::kLinkSlots; ++slot) {
    if (terms().weights[slot] != 0) continue;
    for (protocol::LinkLane& lane : lanes().lanes) {
      lane.slots[slot].waits_until_ns = 0;
      lane.slots[slot].admitted_bytes = 0;
    }
    SetWeight(slot, weight);
    return slot;
  }
  return std::nullopt;
}

void LinkShare::SetWeight(uint32_t slot, uint32_t weight) {
  terms().weights[slot] = std::max(weight, 1u);
  Recount();
}

void LinkShare::Leave(uint32_t slot) {
  for (protocol::LinkLane& lane : lanes().lanes) lane.slots[slot].waits_until_ns = 0;
  terms().weights[slot] = 0;
  Recount();
}

void LinkShare::SetRates(const LinkRates& rates) {
  terms().bytes_per_second[0] = rates.to_device_bytes_per_second;
  terms().bytes_per_second[1] = rates.to_host_bytes_per_second;
}

void LinkShare::Mend(int64_t now_ns) {
  for (const auto direction : {protocol::Direction::kToDevice, protocol::Direction::kToHost}) {
    protocol::LinkLane& lane = lanes().lanes[static_cast<size_t>(direction)];
    int64_t free_at_ns = lane.free_at_ns;
    if (free_at_ns > protocol::LatestPlausibleFreeNs(terms(), direction, now_ns)) {
      lane.free_at_ns.compare_exchange_strong(free_at_ns, now_ns);
    }
    for (uint32_t slot = 0; slot < protocol::kLinkSlots; ++slot) {
      // No honest client announces a later turn.
      int64_t until_ns = lane.slots[slot].waits_until_ns;
      if (until_ns > now_ns + kLongestWait_ns)
        lane.slots[slot].waits_until_ns.compare_exchange_strong(until_ns, 0);
    }
  }
}

int64_t LinkShare::AdmittedBytes(uint32_t slot, protocol::Direction direction) const {
  return lanes().lanes[static_cast<size_t>(direction)].slots[slot].admitted_bytes;
}

void LinkShare::Recount() {
  uint32_t total = 0;
  uint32_t used = 0;
  for (uint32_t slot = 0; slot < protocol::kLinkSlots; ++slot) {
    const uint32_t weight = terms().weights[slot];
    total += weight;
    if (weight != 0) used = slot + 1;
  }
  terms().total_weight = total;
  terms().slots_used = used;
}

}  // namespace spillway::agent
