#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/units.h"
#include "scheduler/networks/catalog.h"
#include "scheduler/networks/devices.h"
#include "scheduler/networks/training_step.h"
#include "tests/bench/planner/figures.h"

namespace spillway::papers {
namespace {

namespace networks = scheduler::networks;

// The assumed share of the vendor's peaks that full-precision kernels reach.
constexpr int32_t kFlopsPercent = 75;
constexpr int32_t kMemoryPercent = 80;

networks::Device FindDevice(std::string_view name) {
  const auto device = networks::FindDevice(name);
  if (!device) {
    std::fprintf(stderr, "no device profile '%s'\n", std::string(name).c_str());
    std::exit(1);
  }
  return *device;
}

void ScaleDurations(scheduler::IterationProfile& profile, int64_t iteration_ns) {
  const int64_t now_ns = scheduler::BusyNs(profile);
  if (now_ns <= 0) return;
  for (scheduler::Operation& operation : profile.operations) {
    operation.duration_ns = base::scale(operation.duration_ns, iteration_ns, now_ns);
    for (scheduler::WorkspaceChoice& choice : operation.workspaces)
      choice.duration_ns = base::scale(choice.duration_ns, iteration_ns, now_ns);
  }
}

}  // namespace

scheduler::IterationProfile ProfileOf(std::string_view network, std::string_view device,
                                      int64_t batch_size, std::optional<int64_t> iteration_ns) {
  const auto graph = networks::MakeNetwork(network, batch_size);
  if (!graph) {
    std::fprintf(stderr, "no network '%s'\n", std::string(network).c_str());
    std::exit(1);
  }
  networks::TrainingStep step =
      networks::MakeTrainingStep(*graph, networks::UpdatePlace::kAfterGradient);
  networks::SetDurations(
      step, networks::EffectiveRates(FindDevice(device), kFlopsPercent, kMemoryPercent));
  if (iteration_ns) ScaleDurations(step.profile, *iteration_ns);
  return std::move(step.profile);
}

scheduler::DeviceModel DeviceOf(std::string_view device) { return FindDevice(device).model; }

int64_t CapacityOf(std::string_view device) { return FindDevice(device).capacity_bytes; }

double ElapsedMs(double since_ms) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count() - since_ms;
}

}  // namespace spillway::papers
