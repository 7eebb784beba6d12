#include "deploy/kubernetes/pod_terms.h"

#include <algorithm>
#include <map>
#include <optional>

#include "deploy/kubernetes/quantity.h"
#include "deploy/kubernetes/resource_slice.h"

namespace spillway::kubernetes {
namespace {

// Whole steps, and never nothing.
int64_t PartOf(int64_t bytes, size_t pods) {
  if (pods <= 1) return bytes;
  const int64_t part = bytes / static_cast<int64_t>(pods) / kStepBytes * kStepBytes;
  return std::max(part, std::min(bytes, kStepBytes));
}

void RaiseTo(std::optional<int32_t>& most, std::optional<int32_t> value) {
  if (value && (!most || *most < *value)) most = value;
}

std::map<std::string, MemoryTerms> TermsByGpu(const DriverState& state, const std::string& pod) {
  std::map<std::string, MemoryTerms> by_gpu;
  for (const auto& [uid, claim] : state.claims) {
    if (std::find(claim.pods.begin(), claim.pods.end(), pod) == claim.pods.end()) continue;
    for (const PreparedDevice& device : claim.devices) {
      MemoryTerms& sum = by_gpu[device.gpu_uuid];
      sum.guaranteed_bytes += PartOf(device.terms.guaranteed_bytes, claim.pods.size());
      sum.limit_bytes += PartOf(device.terms.limit_bytes, claim.pods.size());
      RaiseTo(sum.weight, device.terms.weight);
      RaiseTo(sum.priority, device.terms.priority);
    }
  }
  return by_gpu;
}

std::string InWords(const std::string& gpu, const MemoryTerms& terms) {
  return FormatQuantity(terms.guaranteed_bytes) + " to " + FormatQuantity(terms.limit_bytes) +
         " on " + gpu;
}

}  // namespace

base::Result<MemoryTerms> TermsOfPod(const DriverState& state, const std::string& pod) {
  std::optional<MemoryTerms> terms;
  std::string first;
  for (const auto& [gpu, sum] : TermsByGpu(state, pod)) {
    if (terms &&
        (terms->guaranteed_bytes != sum.guaranteed_bytes || terms->limit_bytes != sum.limit_bytes))
      return base::Error{"the pod would have " + first + " and " + InWords(gpu, sum),
                         "the agent gives a pod one budget for each of its GPUs",
                         "ask for the same memory on each"};
    if (!terms) {
      terms = sum;
      first = InWords(gpu, sum);
    }
    RaiseTo(terms->weight, sum.weight);
    RaiseTo(terms->priority, sum.priority);
  }
  if (!terms) return base::Error{"the pod has no claim"};
  return *terms;
}

protocol::JobName JobNameOf(const std::string& pod) { return protocol::JobName("pod-" + pod); }

protocol::ExpectJob Expecting(const std::string& pod, const MemoryTerms& terms) {
  protocol::ExpectJob wanted;
  wanted.job = JobNameOf(pod);
  wanted.guaranteed_bytes = terms.guaranteed_bytes;
  wanted.limit_bytes = std::max(terms.limit_bytes, terms.guaranteed_bytes);
  wanted.weight = terms.weight.value_or(-1);
  wanted.priority_plus_one = terms.priority ? *terms.priority + 1 : 0;
  return wanted;
}

}  // namespace spillway::kubernetes
