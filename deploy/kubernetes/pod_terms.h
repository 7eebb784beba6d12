// A pod's terms at the agent, from the claims that it may use. Pure.
//
// The agent knows a process by its pod's control group, and gives a pod one budget for each of its
// GPUs. So a pod has its claims on a GPU together (Note [Limits of several claims]), and as much on
// every GPU.
#pragma once

#include <string>

#include "base/result.h"
#include "deploy/kubernetes/driver_state.h"
#include "deploy/kubernetes/memory_terms.h"
#include "protocol/message.h"

namespace spillway::kubernetes {

// Whose claims ask for unequal memory on its GPUs. A pod that kubelet prepares can be refused; one
// that runs already has the least of its GPUs on each.
enum class UnequalPod { kRefuse, kBound };

// Pods that share a claim have equal parts of it, so that together they have what the scheduler
// counted. Where parts differ from GPU to GPU, the least one bounds the pod on each.
base::Result<MemoryTerms> TermsOfPod(const DriverState& state, const std::string& pod,
                                     UnequalPod unequal = UnequalPod::kRefuse);

protocol::JobName JobNameOf(const std::string& pod);
protocol::ExpectJob Expecting(const std::string& pod, const MemoryTerms& terms);

}  // namespace spillway::kubernetes
