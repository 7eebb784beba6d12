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

// Pods that share a claim have equal parts of it, so that together they have what the scheduler
// counted. An error: the pod's GPUs would have different budgets.
base::Result<MemoryTerms> TermsOfPod(const DriverState& state, const std::string& pod);

protocol::JobName JobNameOf(const std::string& pod);
protocol::ExpectJob Expecting(const std::string& pod, const MemoryTerms& terms);

}  // namespace spillway::kubernetes
