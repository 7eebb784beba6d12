#include "agent/pool/topology.h"

#include <hwloc.h>

namespace spillway::agent {

std::unique_ptr<Topology> Topology::OfThisMachine() {
  hwloc_topology_t tree = nullptr;
  return hwloc_topology_init(&tree) == 0 ? Load(tree) : nullptr;
}

std::unique_ptr<Topology> Topology::FromXml(const std::string& path) {
  hwloc_topology_t tree = nullptr;
  if (hwloc_topology_init(&tree) != 0) return nullptr;
  if (hwloc_topology_set_xml(tree, path.c_str()) == 0) return Load(tree);
  hwloc_topology_destroy(tree);
  return nullptr;
}

std::unique_ptr<Topology> Topology::Load(hwloc_topology* tree) {
  if (hwloc_topology_set_io_types_filter(tree, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
      hwloc_topology_load(tree) == 0) {
    return std::unique_ptr<Topology>(new Topology(tree));
  }
  hwloc_topology_destroy(tree);
  return nullptr;
}

Topology::~Topology() { hwloc_topology_destroy(tree_); }

int Topology::NodeNear(const std::string& bus_id) const {
  const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(tree_, bus_id.c_str());
  if (device == nullptr) return kAnyNode;
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(tree_, device);
  // A device near several nodes has no near one.
  if (near == nullptr || near->nodeset == nullptr || hwloc_bitmap_weight(near->nodeset) != 1)
    return kAnyNode;
  return hwloc_bitmap_first(near->nodeset);
}

std::vector<int> Topology::Nodes() const {
  std::vector<int> nodes;
  const hwloc_const_nodeset_t all = hwloc_topology_get_topology_nodeset(tree_);
  for (int node = hwloc_bitmap_first(all); node >= 0; node = hwloc_bitmap_next(all, node))
    nodes.push_back(node);
  return nodes;
}

bool Topology::Bind(void* address, size_t size_bytes, int node) const {
  if (node < 0 || hwloc_topology_is_thissystem(tree_) == 0) return false;
  const hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
  hwloc_bitmap_only(nodes, static_cast<unsigned>(node));
  const int result = hwloc_set_area_membind(tree_, address, size_bytes, nodes, HWLOC_MEMBIND_BIND,
                                            HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT);
  hwloc_bitmap_free(nodes);
  return result == 0;
}

}  // namespace spillway::agent
