// The work for the devices' multiprocessors and copy engines.
//
// Invariants
//  1. Each device has two copy engines, each with one operation at a time. It computes as many
//     operations as have multiprocessors. Ready operations start in the order (priority, ready_ns,
//     sequence); none overtakes. Neither addresses nor real time affect the choice.
//  2. While both links of a device are busy, each progresses at its both-way rate.
//  3. On a machine that several processes share (node.h) the node tells the ends, in this process's
//     turn.
#pragma once

#include <array>
#include <set>
#include <vector>

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {

struct Profile;
class Node;

class DeviceQueues {
 public:
  // All devices are alike. `node`: the shared machine, or null.
  DeviceQueues(const Profile& profile, int device_count, Node* node);

  void Add(const OperationRef& operation);
  bool CanStart() const;
  void Start(Nanos now_ns);
  void Retire(const OperationRef& operation, Nanos now_ns);

  OperationRef NextToEnd() const;
  bool IsComputing(const OperationRef& operation) const { return computing_.contains(operation); }

  // With a node: the ends by the work of all processes so far, and what this one occupies.
  void ForecastSharedEnds();
  void PublishHolds();

 private:
  struct ReadyOrder {
    bool operator()(const OperationRef& a, const OperationRef& b) const;
  };
  struct EndOrder {
    bool operator()(const OperationRef& a, const OperationRef& b) const;
  };
  using ReadyQueue = std::set<OperationRef, ReadyOrder>;
  enum Link { kH2d, kD2h, kLinks };
  struct Device {
    int free_multiprocessors;
    ReadyQueue ready_compute;
    std::array<ReadyQueue, kLinks> ready_copies;
    std::array<OperationRef, kLinks> copying;
  };

  static Link LinkOf(const Operation& operation) {
    return operation.resource == Resource::kHostToDevice ? kH2d : kD2h;
  }
  Device& DeviceOf(const Operation& operation) {
    return devices_[static_cast<std::size_t>(operation.device)];
  }
  void StartCompute(Device& device, Nanos now_ns);
  void StartLinks(Nanos now_ns);
  void SettleLinkWork(Nanos now_ns);
  void ForecastLinkEnds(Nanos now_ns);
  std::uint64_t LinkRate(const Device& device, int link) const;
  void StartOnSharedEngine(Operation& operation);

  const Profile& profile_;
  Node* const node_;
  std::vector<Device> devices_;
  std::set<OperationRef, EndOrder> computing_;
  Nanos link_settled_ns_ = 0;
  Nanos computed_ns_ = 0;
  bool holds_changed_ = false;  // the node's record is out of date
};

}  // namespace spillway::simulator
