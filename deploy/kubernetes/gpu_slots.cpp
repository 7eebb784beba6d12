#include "deploy/kubernetes/gpu_slots.h"

#include <algorithm>

#include "deploy/kubernetes/resource_slice.h"

namespace spillway::kubernetes {
namespace {

constexpr char kSeparator[] = "-s";

std::string GpuOfSlot(const std::string& id) { return id.substr(0, id.rfind(kSeparator)); }

}  // namespace

std::vector<Slot> SlotsOf(const std::vector<Gpu>& gpus, int slots, bool takes_jobs) {
  std::vector<Slot> list;
  for (const Gpu& gpu : gpus) {
    for (int i = 0; i < slots; ++i)
      list.push_back({gpu.uuid + kSeparator + std::to_string(i), takes_jobs});
  }
  return list;
}

base::Result<SlotGrant> GrantOf(const std::vector<std::string>& ids, const std::vector<Gpu>& gpus,
                                int slots) {
  std::map<std::string, int> by_gpu;
  for (const std::string& id : ids) ++by_gpu[GpuOfSlot(id)];
  SlotGrant grant;
  for (const auto& entry : by_gpu) {
    const std::string& uuid = entry.first;
    const int count = entry.second;
    const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const Gpu& known) { return known.uuid == uuid; });
    if (gpu == gpus.end()) return base::Error{"the agent knows no GPU " + uuid};
    const int64_t bytes = gpu->memory_bytes / slots * count / kStepBytes * kStepBytes;
    grant.budget_bytes = grant.gpus.empty() ? bytes : std::min(grant.budget_bytes, bytes);
    if (count != by_gpu.begin()->second)
      return base::Error{"the container would have unequal numbers of slots on its GPUs",
                         "a container has one budget for each of its GPUs",
                         "ask for one slot, or for as many as one GPU has"};
    grant.gpus.push_back(uuid);
  }
  if (grant.gpus.empty()) return base::Error{"no slot is asked for"};
  return grant;
}

std::vector<std::string> PreferredSlots(const std::vector<std::string>& available,
                                        const std::vector<std::string>& must_have, size_t count) {
  std::map<std::string, std::vector<std::string>> free_by_gpu;
  std::vector<std::string> chosen = must_have;
  for (const std::string& id : available) {
    if (std::find(must_have.begin(), must_have.end(), id) == must_have.end())
      free_by_gpu[GpuOfSlot(id)].push_back(id);
  }
  while (chosen.size() < count && !free_by_gpu.empty()) {
    const size_t missing = count - chosen.size();
    // The fullest GPU that has enough; else the emptiest.
    auto best = free_by_gpu.begin();
    for (auto gpu = free_by_gpu.begin(); gpu != free_by_gpu.end(); ++gpu) {
      const bool fits = gpu->second.size() >= missing, best_fits = best->second.size() >= missing;
      const bool is_better = fits && best_fits ? gpu->second.size() < best->second.size()
                                               : gpu->second.size() > best->second.size();
      if (is_better) best = gpu;
    }
    for (const std::string& id : best->second) {
      if (chosen.size() < count) chosen.push_back(id);
    }
    free_by_gpu.erase(best);
  }
  return chosen;
}

}  // namespace spillway::kubernetes
