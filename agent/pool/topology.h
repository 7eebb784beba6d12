// The machine's NUMA nodes: which one is near a GPU, and how to place memory there.
//
// kAnyNode: unknown, as on one-node or virtual machines, or for devices that hwloc does not know.
// Memory then stays where the kernel puts it.
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
  // Null: hwloc cannot read this machine.
  static std::unique_ptr<Topology> OfThisMachine();
  // For tests; binding to its nodes fails.
  static std::unique_ptr<Topology> FromXml(const std::string& path);
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // `bus_id`: "0000:81:00.0", or NVML's form with an eight-digit domain.
  int NodeNear(const std::string& bus_id) const;
  std::vector<int> Nodes() const;
  // False: from anywhere.
  bool Bind(void* address, size_t size_bytes, int node) const;

 private:
  explicit Topology(hwloc_topology* tree) : tree_(tree) {}
  static std::unique_ptr<Topology> Load(hwloc_topology* tree);

  hwloc_topology* const tree_;
};

}  // namespace spillway::agent
