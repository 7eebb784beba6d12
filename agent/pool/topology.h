// Where a machine's memory is, seen from its devices: which NUMA node is near a GPU, and how memory
// is put there.
//
// Loaded once by the agent (some 10 ms); then only read, by any thread. Rests on hwloc.
//
// What is unknown is said (kAnyNode): machines with one node, virtual ones, devices that the tree
// does not know. Memory is then left where the kernel puts it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

struct hwloc_topology;

namespace spillway::agent {

inline constexpr int kAnyNode = -1;

class Topology {
 public:
  // This machine's; null: hwloc cannot read it.
  static std::unique_ptr<Topology> OfThisMachine();
  // A described one, for tests: nothing can be bound to its nodes.
  static std::unique_ptr<Topology> FromXml(const std::string& path);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // `bus_id`: "0000:81:00.0", or with eight digits of domain as NVML writes it.
  int NodeNear(const std::string& bus_id) const;
  std::vector<int> Nodes() const;
  // Pages that are touched from now on come from that node. False: they come from anywhere.
  bool Bind(void* address, size_t size_bytes, int node) const;

 private:
  explicit Topology(hwloc_topology* tree) : tree_(tree) {}
  static std::unique_ptr<Topology> Load(hwloc_topology* tree);

  hwloc_topology* const tree_;
};

}  // namespace spillway::agent
