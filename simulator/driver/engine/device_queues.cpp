#include "simulator/driver/engine/device_queues.h"

#include <algorithm>
#include <tuple>

#include "simulator/driver/machine/node.h"
#include "simulator/driver/machine/profile.h"
#include "simulator/driver/machine/statistics.h"

namespace spillway::simulator {
namespace {

using node::EngineId;

constexpr unsigned __int128 kWideNanosPerSecond = 1'000'000'000;

node::Engine EngineOf(const Operation& operation) {
  if (operation.resource == Resource::kHostToDevice) return node::kH2d;
  return operation.resource == Resource::kDeviceToHost ? node::kD2h : node::kCompute;
}

EngineId IdOf(const Operation& operation) { return {operation.device, EngineOf(operation)}; }

}  // namespace

bool DeviceQueues::ReadyOrder::operator()(const OperationRef& a, const OperationRef& b) const {
  return std::tie(a->priority, a->ready_ns, a->sequence) <
         std::tie(b->priority, b->ready_ns, b->sequence);
}

bool DeviceQueues::EndOrder::operator()(const OperationRef& a, const OperationRef& b) const {
  return std::tie(a->end_ns, a->sequence) < std::tie(b->end_ns, b->sequence);
}

DeviceQueues::DeviceQueues(const Profile& profile, int device_count, Node* node)
    : profile_(profile),
      node_(node),
      devices_(static_cast<std::size_t>(device_count),
               Device{profile.multiprocessors, {}, {}, {}}) {}

void DeviceQueues::Add(const OperationRef& operation) {
  Device& device = DeviceOf(*operation);
  const bool computes = operation->resource == Resource::kCompute;
  (computes ? device.ready_compute : device.ready_copies[LinkOf(*operation)]).insert(operation);
}

bool DeviceQueues::CanStart() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const Device& device) {
    const ReadyQueue& ready = device.ready_compute;
    if (!ready.empty() && (*ready.begin())->multiprocessors <= device.free_multiprocessors)
      return true;
    return (device.copying[kH2d] == nullptr && !device.ready_copies[kH2d].empty()) ||
           (device.copying[kD2h] == nullptr && !device.ready_copies[kD2h].empty());
  });
}

void DeviceQueues::Start(Nanos now_ns) {
  for (Device& device : devices_) StartCompute(device, now_ns);
  StartLinks(now_ns);
}

void DeviceQueues::Retire(const OperationRef& operation, Nanos now_ns) {
  SettleLinkWork(now_ns);
  holds_changed_ = true;
  Device& device = DeviceOf(*operation);
  if (operation->resource == Resource::kCompute) {
    computing_.erase(operation);
    computed_ns_ += operation->duration_ns;
    device.free_multiprocessors += operation->multiprocessors;
  } else {
    device.copying[LinkOf(*operation)] = nullptr;
  }
}

OperationRef DeviceQueues::NextToEnd() const {
  OperationRef next = computing_.empty() ? nullptr : *computing_.begin();
  for (const Device& device : devices_) {
    for (const OperationRef& copy : device.copying) {
      if (copy != nullptr && (next == nullptr || EndOrder()(copy, next))) next = copy;
    }
  }
  return next;
}

void DeviceQueues::StartCompute(Device& device, Nanos now_ns) {
  ReadyQueue& ready = device.ready_compute;
  while (!ready.empty() && (*ready.begin())->multiprocessors <= device.free_multiprocessors) {
    const OperationRef operation = *ready.begin();
    ready.erase(ready.begin());
    device.free_multiprocessors -= operation->multiprocessors;
    operation->start_ns = now_ns;
    operation->end_ns = now_ns + operation->duration_ns;
    if (node_ != nullptr) StartOnSharedEngine(*operation);
    computing_.insert(operation);
  }
}

void DeviceQueues::StartLinks(Nanos now_ns) {
  SettleLinkWork(now_ns);
  for (Device& device : devices_) {
    for (const int link : {kH2d, kD2h}) {
      ReadyQueue& ready = device.ready_copies[link];
      if (device.copying[link] != nullptr || ready.empty()) continue;
      const OperationRef operation = *ready.begin();
      ready.erase(ready.begin());
      device.copying[link] = operation;
      operation->start_ns = now_ns;
      // The set-up time counts as work too, so one number is all that remains.
      operation->remaining =
          operation->link_bytes * kWideNanosPerSecond +
          static_cast<unsigned __int128>(operation->duration_ns) * LinkRate(device, link);
      if (node_ != nullptr) StartOnSharedEngine(*operation);
    }
  }
  ForecastLinkEnds(now_ns);
}

std::uint64_t DeviceQueues::LinkRate(const Device& device, int link) const {
  const bool both = device.copying[kH2d] != nullptr && device.copying[kD2h] != nullptr;
  if (link == kH2d)
    return both ? profile_.h2d_both_bytes_per_second : profile_.h2d_bytes_per_second;
  return both ? profile_.d2h_both_bytes_per_second : profile_.d2h_bytes_per_second;
}

// Precedes every change among running copies.
void DeviceQueues::SettleLinkWork(Nanos now_ns) {
  if (node_ != nullptr) return;
  const auto passed_ns = static_cast<unsigned __int128>(now_ns - link_settled_ns_);
  link_settled_ns_ = now_ns;
  for (Device& device : devices_) {
    for (const int link : {kH2d, kD2h}) {
      if (device.copying[link] == nullptr) continue;
      const unsigned __int128 progress = passed_ns * LinkRate(device, link);
      device.copying[link]->remaining -= std::min(device.copying[link]->remaining, progress);
    }
  }
}

void DeviceQueues::ForecastLinkEnds(Nanos now_ns) {
  if (node_ != nullptr) return;
  for (Device& device : devices_) {
    for (const int link : {kH2d, kD2h}) {
      if (device.copying[link] == nullptr) continue;
      const std::uint64_t rate = LinkRate(device, link);
      device.copying[link]->end_ns =
          now_ns + static_cast<Nanos>((device.copying[link]->remaining + rate - 1) / rate);
    }
  }
}

void DeviceQueues::StartOnSharedEngine(Operation& operation) {
  const EngineId id = IdOf(operation);
  const node::Work work = id.engine == node::kCompute
                              ? static_cast<node::Work>(operation.duration_ns) * node::kWorkPerNano
                              : node_->CopyWork(id, operation.link_bytes, operation.duration_ns);
  operation.shared_end = node_->GivenNow(id) + work;
  holds_changed_ = true;
}

void DeviceQueues::ForecastSharedEnds() {
  const std::vector<OperationRef> computing(computing_.begin(), computing_.end());
  computing_.clear();  // their order depends on the end times that change now
  for (const OperationRef& operation : computing) {
    operation->end_ns = node_->TimeOf(IdOf(*operation), operation->shared_end);
    computing_.insert(operation);
  }
  for (const Device& device : devices_) {
    for (const OperationRef& copy : device.copying) {
      if (copy != nullptr) copy->end_ns = node_->TimeOf(IdOf(*copy), copy->shared_end);
    }
  }
  holds_changed_ = true;
}

void DeviceQueues::PublishHolds() {
  if (!holds_changed_) return;
  Node::Holds holds = {};
  const auto add = [&](const Operation& operation) {
    Node::Hold& hold = holds[static_cast<std::size_t>(operation.device)][EngineOf(operation)];
    hold.next_end =
        hold.holds ? std::min(hold.next_end, operation.shared_end) : operation.shared_end;
    hold.holds = true;
  };
  for (const OperationRef& operation : computing_) add(*operation);
  for (const Device& device : devices_) {
    for (const OperationRef& copy : device.copying) {
      if (copy != nullptr) add(*copy);
    }
  }
  const Statistics& statistics = TheStatistics();
  node_->SetHolds(holds, {statistics.kernels, statistics.h2d_bytes, statistics.d2h_bytes,
                          static_cast<std::uint64_t>(computed_ns_)});
  holds_changed_ = false;
}

}  // namespace spillway::simulator
