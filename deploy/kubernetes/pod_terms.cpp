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

// What a pod's claims sum up to on a GPU: of those whose class sets a limit, and of the others.
struct ClaimSum {
  int64_t guaranteed_bytes = 0, limit_bytes = 0;
  int64_t counted_bytes = 0;  // by the scheduler, as far as the limits let the pod have it

  void Add(const PreparedDevice& device, size_t pods) {
    guaranteed_bytes += PartOf(device.terms.guaranteed_bytes, pods);
    limit_bytes += PartOf(device.terms.limit_bytes, pods);
    counted_bytes += PartOf(std::min(device.counted_bytes, device.terms.limit_bytes), pods);
  }
  void BoundBy(int64_t most_bytes) {
    for (int64_t* const bytes : {&guaranteed_bytes, &limit_bytes, &counted_bytes})
      *bytes = std::min(*bytes, most_bytes);
  }
};

// Note [Limits of several claims]
// What the scheduler counted adds up. What a class allows beyond that does not: a pod could
// otherwise pass any limit by naming more claims. So claims whose classes set a limit have
// together at most the largest of these. A claim of a class without a limit adds what was counted
// for it. The pod's limit is the larger one of the classes' limit and the sum that was counted.
struct GpuTerms {
  ClaimSum limited, plain;
  int64_t largest_class_limit_bytes = 0;
  std::optional<int32_t> weight, priority;

  void Add(const PreparedDevice& device, size_t pods) {
    (device.class_limit_bytes ? limited : plain).Add(device, pods);
    largest_class_limit_bytes =
        std::max(largest_class_limit_bytes, device.class_limit_bytes.value_or(0));
    RaiseTo(weight, device.terms.weight);
    RaiseTo(priority, device.terms.priority);
  }
  MemoryTerms Terms() const {
    ClaimSum bounded = limited;
    bounded.BoundBy(largest_class_limit_bytes);
    return {.guaranteed_bytes = bounded.guaranteed_bytes + plain.guaranteed_bytes,
            .limit_bytes = std::max(bounded.limit_bytes, bounded.counted_bytes + plain.limit_bytes),
            .weight = weight,
            .priority = priority};
  }
};

enum class Parts { kDivided, kWhole };

std::map<std::string, MemoryTerms> TermsByGpu(const DriverState& state, const std::string& pod,
                                              Parts parts) {
  std::map<std::string, GpuTerms> by_gpu;
  for (const auto& [uid, claim] : state.claims) {
    if (std::find(claim.pods.begin(), claim.pods.end(), pod) == claim.pods.end()) continue;
    for (const PreparedDevice& device : claim.devices)
      by_gpu[device.gpu_uuid].Add(device, parts == Parts::kWhole ? 1 : claim.pods.size());
  }
  std::map<std::string, MemoryTerms> terms;
  for (const auto& [gpu, sum] : by_gpu) terms[gpu] = sum.Terms();
  return terms;
}

std::string InWords(const std::string& gpu, const MemoryTerms& terms) {
  return FormatQuantity(terms.guaranteed_bytes) + " to " + FormatQuantity(terms.limit_bytes) +
         " on " + gpu;
}

// Of what the pod asks for, whoever shares it.
base::Status CheckEqual(const std::map<std::string, MemoryTerms>& by_gpu) {
  for (const auto& [gpu, terms] : by_gpu) {
    const auto& [first_gpu, first] = *by_gpu.begin();
    if (terms.guaranteed_bytes != first.guaranteed_bytes || terms.limit_bytes != first.limit_bytes)
      return base::Error{
          "the pod would have " + InWords(first_gpu, first) + " and " + InWords(gpu, terms),
          "the agent gives a pod one budget for each of its GPUs",
          "ask for the same memory on each"};
  }
  return base::Ok();
}

}  // namespace

base::Result<MemoryTerms> TermsOfPod(const DriverState& state, const std::string& pod,
                                     UnequalPod unequal) {
  const auto by_gpu = TermsByGpu(state, pod, Parts::kDivided);
  if (by_gpu.empty()) return base::Error{"the pod has no claim"};
  if (unequal == UnequalPod::kRefuse) {
    base::Status equal = CheckEqual(TermsByGpu(state, pod, Parts::kWhole));
    if (!equal.ok()) return equal;
  }
  MemoryTerms least = by_gpu.begin()->second;
  for (const auto& [gpu, terms] : by_gpu) {
    least.guaranteed_bytes = std::min(least.guaranteed_bytes, terms.guaranteed_bytes);
    least.limit_bytes = std::min(least.limit_bytes, terms.limit_bytes);
    RaiseTo(least.weight, terms.weight);
    RaiseTo(least.priority, terms.priority);
  }
  return least;
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
