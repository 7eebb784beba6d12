#include "deploy/kubernetes/resource_slice.h"

#include <nlohmann/json.hpp>

#include "deploy/kubernetes/claim.h"
#include "deploy/kubernetes/quantity.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostAttribute = 64, kMostName = 253;

ordered_json AttributesOf(const Gpu& gpu) {
  ordered_json attributes = {{"uuid", {{"string", gpu.uuid}}}};
  if (!gpu.model.empty()) attributes["model"] = {{"string", gpu.model.substr(0, kMostAttribute)}};
  if (!gpu.pci_bus_id.empty())
    attributes["resource.kubernetes.io/pciBusID"] = {{"string", gpu.pci_bus_id}};
  return attributes;
}

ordered_json DeviceOf(const Gpu& gpu, const std::vector<Taint>& taints) {
  const ordered_json range = {{"min", FormatQuantity(kLeastBytes)},
                              {"step", FormatQuantity(kStepBytes)}};
  const ordered_json policy = {{"default", FormatQuantity(kLeastBytes)}, {"validRange", range}};
  ordered_json device = {
      {"name", DeviceNameOf(gpu.uuid)},
      {"attributes", AttributesOf(gpu)},
      {"capacity",
       {{kMemory, {{"value", FormatQuantity(CapacityOf(gpu))}, {"requestPolicy", policy}}}}},
      {"allowMultipleAllocations", true}};
  for (const Taint& taint : taints)
    device["taints"].push_back(
        {{"key", taint.key}, {"value", taint.value}, {"effect", "NoSchedule"}});
  return device;
}

}  // namespace

std::string SliceNameOf(const std::string& node) {
  std::string name = node + "-" + kDriver;
  if (name.size() <= kMostName) return name;
  return name.substr(name.size() - kMostName);
}

int64_t CapacityOf(const Gpu& gpu) { return gpu.memory_bytes / kStepBytes * kStepBytes; }

base::Result<std::string> ResourceSlice(const NodeName& node, const std::vector<Gpu>& gpus,
                                        const std::vector<Taint>& taints) {
  if (gpus.size() > kMostDevices)
    return base::Error{"the node has " + std::to_string(gpus.size()) +
                       " GPUs, and a ResourceSlice takes " + std::to_string(kMostDevices)};
  ordered_json devices = ordered_json::array();
  for (const Gpu& gpu : gpus) {
    if (CapacityOf(gpu) >= kLeastBytes) devices.push_back(DeviceOf(gpu, taints));
  }
  const ordered_json owner = {
      {"apiVersion", "v1"}, {"kind", "Node"}, {"name", node.name}, {"uid", node.uid}};
  const ordered_json slice = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"metadata",
       {{"name", SliceNameOf(node.name)}, {"ownerReferences", ordered_json::array({owner})}}},
      {"spec",
       {{"driver", kDriver},
        {"nodeName", node.name},
        {"pool", {{"name", node.name}, {"generation", 1}, {"resourceSliceCount", 1}}},
        {"devices", devices}}}};
  return slice.dump();
}

}  // namespace spillway::kubernetes
