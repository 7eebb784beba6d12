#include "interposer/lease/lease_client.h"

#include <algorithm>

namespace spillway::interposer {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kFirstPauseNs = 50 * kMillisecond;
constexpr int64_t kLongestPauseNs = 2000 * kMillisecond;
constexpr int64_t kRefusedPauseNs = 30'000 * kMillisecond;
constexpr int64_t kGreetingNs = 5000 * kMillisecond;
constexpr int64_t kWhileShrinkingNs = 5 * kMillisecond;
// What has come back in between is told in such pieces.
constexpr int64_t kPieceBytes = int64_t{64} << 20;

}  // namespace

void LeaseClient::Use(uint32_t device, const protocol::DeviceUuid& uuid, int64_t memory_bytes) {
  if (Find(device) != nullptr) return;
  Device added;
  added.number = device;
  added.uuid = uuid;
  added.memory_bytes = memory_bytes;
  devices_.push_back(added);
}

LeaseClient::Device* LeaseClient::Find(uint32_t number) {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [number](const Device& one) { return one.number == number; });
  return found == devices_.end() ? nullptr : &*found;
}

int64_t LeaseClient::Step(int64_t now_ns) {
  if (state_ == State::kAway) TryToConnect(now_ns);
  Listen(now_ns);
  // Not before what is there is read: this process may have been stopped, or the clock set.
  if (state_ == State::kGreeting && now_ns >= try_again_ns_) Lose(now_ns, kFirstPauseNs);
  int64_t next_ns = try_again_ns_;
  if (state_ != State::kServed) return next_ns;
  next_ns = now_ns + interval_ns_;
  for (Device& device : devices_) {
    if (!device.registered) Register(device, now_ns);
    Confirm(device, now_ns);
    Report(device, now_ns);
    const bool shrinks = device.has_grant && device.confirmed_bytes > device.grant.budget_bytes;
    if (shrinks) next_ns = std::min(next_ns, now_ns + kWhileShrinkingNs);
  }
  return state_ == State::kServed ? next_ns : try_again_ns_;
}

void LeaseClient::TryToConnect(int64_t now_ns) {
  if (devices_.empty() || now_ns < try_again_ns_) return;
  channel_ = connector_.Connect();
  protocol::Hello hello;
  hello.leader_pid = settings_.leader_pid;
  hello.software = "libspillway";
  if (channel_ == nullptr || channel_->Send(hello) != protocol::Sent::kSent) {
    const int64_t pause_ns = std::clamp(2 * pause_ns_, kFirstPauseNs, kLongestPauseNs);
    return Lose(now_ns, pause_ns);
  }
  state_ = State::kGreeting;
  try_again_ns_ = now_ns + kGreetingNs;
}

void LeaseClient::Lose(int64_t now_ns, int64_t again_after_ns) {
  channel_.reset();
  state_ = State::kAway;
  pause_ns_ = again_after_ns;
  try_again_ns_ = now_ns + again_after_ns;
  for (Device& device : devices_) device.registered = false;
}

void LeaseClient::Listen(int64_t now_ns) {
  while (channel_ != nullptr) {
    const protocol::Received received = channel_->Receive();
    switch (received.what) {
      case protocol::Received::What::kNothing:
        return;
      case protocol::Received::What::kClosed:
        return Lose(now_ns, kFirstPauseNs);
      case protocol::Received::What::kFault:
        return Lose(now_ns, kRefusedPauseNs);
      case protocol::Received::What::kMessage:
        Hear(received.message, now_ns);
    }
  }
}

void LeaseClient::Hear(const protocol::Message& message, int64_t now_ns) {
  if (const auto* welcome = std::get_if<protocol::Welcome>(&message)) {
    state_ = State::kServed;
    pause_ns_ = 0;
    interval_ns_ = welcome->usage_interval_ms * kMillisecond;
  } else if (const auto* grant = std::get_if<protocol::Grant>(&message)) {
    Follow(*grant, now_ns);
  } else if (const auto* admission = std::get_if<protocol::Admission>(&message)) {
    subject_.Admission(*admission);
  } else if (const auto* error = std::get_if<protocol::Error>(&message)) {
    const bool comes_back = error->code == protocol::ErrorCode::kAgentStops;
    Lose(now_ns, comes_back ? kFirstPauseNs : kRefusedPauseNs);
  }
}

void LeaseClient::Follow(const protocol::Grant& grant, int64_t now_ns) {
  Device* const device = Find(grant.device);
  if (device == nullptr || !device->registered) return;
  device->grant = grant;
  device->has_grant = true;
  device->confirmed_bytes = -1;
  subject_.SetBudget(grant, now_ns + grant.deadline_ms * kMillisecond);
}

bool LeaseClient::Say(const protocol::Message& message, int64_t now_ns) {
  if (channel_ == nullptr) return false;
  const protocol::Sent sent = channel_->Send(message);
  if (sent == protocol::Sent::kClosed) Lose(now_ns, kFirstPauseNs);
  return sent == protocol::Sent::kSent;
}

void LeaseClient::Register(Device& device, int64_t now_ns) {
  const DeviceUse use = subject_.Read(device.number);
  protocol::Register asked;
  asked.device = device.number;
  asked.uuid = device.uuid;
  asked.memory_bytes = device.memory_bytes;
  asked.wanted_bytes = use.wanted_bytes;
  asked.own_limit_bytes = settings_.own_limit_bytes;
  asked.own_host_limit_bytes = settings_.own_host_limit_bytes;
  if (device.has_grant) {
    asked.held_bytes = std::max(device.grant.budget_bytes, use.resident_bytes);
    asked.held_host_bytes = std::max(device.grant.host_bytes, use.host_bytes);
  }
  device.registered = Say(asked, now_ns);
  // Serials of another agent begin anew.
  device.confirmed_bytes = device.grant.budget_bytes;
  device.said = {};
  device.said_ns = now_ns;
}

void LeaseClient::Confirm(Device& device, int64_t now_ns) {
  if (!device.has_grant || !device.registered) return;
  const bool is_done = device.confirmed_bytes >= 0 && device.confirmed_bytes <= device.grant.budget_bytes;
  if (is_done) return;
  const DeviceUse use = subject_.Read(device.number);
  const int64_t held_bytes = std::max(device.grant.budget_bytes, use.resident_bytes);
  const bool is_news = device.confirmed_bytes < 0 || held_bytes == device.grant.budget_bytes ||
                       held_bytes <= device.confirmed_bytes - kPieceBytes;
  if (!is_news) return;
  const protocol::Obeyed obeyed{device.number, device.grant.serial, held_bytes,
                                std::max(device.grant.host_bytes, use.host_bytes)};
  if (Say(obeyed, now_ns)) device.confirmed_bytes = held_bytes;
}

void LeaseClient::Report(Device& device, int64_t now_ns) {
  if (!device.registered) return;
  const DeviceUse use = subject_.Read(device.number);
  protocol::Usage usage;
  usage.device = device.number;
  usage.active = use.active;
  usage.phase = use.phase;
  usage.wanted_bytes = use.wanted_bytes;
  usage.resident_bytes = use.resident_bytes;
  usage.unmovable_bytes = use.unmovable_bytes;
  usage.host_bytes = use.host_bytes;
  usage.to_host_bytes = use.to_host_bytes;
  usage.to_device_bytes = use.to_device_bytes;
  usage.stall_ns = use.stall_ns;
  usage.iterations = use.iterations;
  usage.demand_fetches = use.demand_fetches;
  usage.refused_allocations = use.refused_allocations;
  // Who wakes, or wants more than it may have, does not wait for its turn.
  const bool is_urgent = usage.active != device.said.active ||
                         (device.has_grant && usage.wanted_bytes > device.grant.budget_bytes &&
                          usage.wanted_bytes > device.said.wanted_bytes + kPieceBytes);
  if (usage == device.said || (!is_urgent && now_ns - device.said_ns < interval_ns_)) return;
  if (!Say(usage, now_ns)) return;
  device.said = usage;
  device.said_ns = now_ns;
}

void LeaseClient::End(int exit_code) {
  if (state_ == State::kServed) channel_->Send(protocol::Goodbye{exit_code});
  channel_.reset();
  state_ = State::kAway;
  try_again_ns_ = INT64_MAX;
}

}  // namespace spillway::interposer
