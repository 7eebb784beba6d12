// What the device plugin offers where there is no DRA: slots of a GPU, each with an equal part of
// its memory. Pure.
//
// The interface names neither pod nor claim, so a slot's budget is a limit in the container's
// environment, below what the agent's rules allow its pod.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/kubernetes/node_devices.h"

namespace spillway::kubernetes {

struct Slot {
  std::string id;  // "GPU-73696d2d-...-s2", at most 63 characters
  bool is_healthy = true;
  bool operator==(const Slot&) const = default;
};

// `slots`: of each GPU. They are unhealthy while the node takes no new job.
std::vector<Slot> SlotsOf(const std::vector<Gpu>& gpus, int slots, bool takes_jobs);

struct SlotGrant {
  int64_t budget_bytes = 0;       // on each GPU
  std::vector<std::string> gpus;  // uuids
  bool operator==(const SlotGrant&) const = default;
};

// Of one container. Slots of one GPU add up. An error: an unknown slot, or unequal numbers of slots
// on the container's GPUs, which have one budget.
base::Result<SlotGrant> GrantOf(const std::vector<std::string>& ids, const std::vector<Gpu>& gpus,
                                int slots);

// The best `count` of the available ids, with those that must be there: slots of as few GPUs as
// possible, first of the GPU with most slots in use.
std::vector<std::string> PreferredSlots(const std::vector<std::string>& available,
                                        const std::vector<std::string>& must_have, size_t count);

}  // namespace spillway::kubernetes
