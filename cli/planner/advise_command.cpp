#include "cli/planner/advise_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/size_text.h"
#include "cli/failure.h"
#include "cli/planner/plan_command.h"
#include "cli/planner/profile_source.h"
#include "scheduler/plan/advice.h"

namespace spillway::cli {
namespace {

using namespace scheduler;

std::string Bytes(int64_t bytes) { return base::FormatBytes(static_cast<uint64_t>(bytes)); }

void PrintAdvice(const AdviceRequest& request, const Advice& advice, bool modelled) {
  for (const BatchObservation& it : request.observations) {
    std::printf("batch %6lld: %10.3f ms, peak %s, at least %s%s\n",
                static_cast<long long>(it.batch_size), static_cast<double>(it.iteration_ns) / 1e6,
                Bytes(it.peak_bytes).c_str(), Bytes(it.floor_bytes).c_str(),
                modelled ? " (modelled, not measured)" : "");
  }
  std::printf("\nbudget %s: batches up to %lld fit as they are, up to %lld with memory moving\n",
              Bytes(request.budget_bytes).c_str(),
              static_cast<long long>(advice.most_batch_without_moving),
              static_cast<long long>(advice.most_batch));
  const double seconds = static_cast<double>(advice.iteration_ns) / 1e9;
  std::printf(
      "advice: batch %lld, %.3f ms per iteration, %.1f samples per second, %s moving each way, "
      "%.3f ms "
      "waiting\n",
      static_cast<long long>(advice.batch_size), seconds * 1e3,
      seconds > 0 ? static_cast<double>(advice.batch_size) / seconds : 0,
      Bytes(advice.moved_bytes).c_str(), static_cast<double>(advice.waiting_ns) / 1e6);
  if (advice.learning_rate_nano > 0)
    std::printf("learning rate %.9g, in proportion to the batch\n",
                static_cast<double>(advice.learning_rate_nano) / 1e9);
}

void PrintJson(const Advice& advice, bool modelled) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"modelled", modelled},
                                 {"batch_size", advice.batch_size},
                                 {"iteration_ns", advice.iteration_ns},
                                 {"waiting_ns", advice.waiting_ns},
                                 {"moved_bytes", advice.moved_bytes},
                                 {"most_batch_without_moving", advice.most_batch_without_moving},
                                 {"most_batch", advice.most_batch}};
  if (advice.learning_rate_nano > 0) json["learning_rate_nano"] = advice.learning_rate_nano;
  std::printf("%s\n", json.dump(1).c_str());
}

}  // namespace

int64_t ParseLearningRate(const std::string& written) {
  constexpr int kDigits = 9;
  int64_t nano = 0;
  int after_point = -1;
  bool good = !written.empty() && written.size() <= 13;
  for (char c : written) {
    if (c == '.' && after_point < 0) {
      after_point = 0;
      continue;
    }
    good = good && c >= '0' && c <= '9' && after_point < kDigits;
    if (!good) break;
    nano = nano * 10 + (c - '0');
    if (after_point >= 0) ++after_point;
  }
  for (int i = std::max(0, after_point); good && i < kDigits; ++i) nano *= 10;
  if (!good || nano <= 0 || nano > int64_t{1000} * 1'000'000'000)
    throw Failure(kExitUsage, "no learning rate '" + written + "'",
                  "it is a decimal number below 1000", "for example: 0.1");
  return nano;
}

int RunAdviseCommand(const AdviseOptions& options) {
  const networks::Device device = LoadDevice(options.device);
  AdviceRequest request;
  request.device = device.model;
  request.device.chunk_bytes = ParseChunk(options.chunk);
  request.device.slab_unit_bytes = kSlabUnitBytes;
  bool modelled = false;
  for (const std::string& source : options.sources) {
    const LoadedProfile loaded = LoadProfile(source, device);
    if (loaded.profile.batch_size <= 0)
      throw Failure(kExitUsage, source + " does not say its batch size",
                    "advice compares batch sizes", "record it again");
    modelled = modelled || loaded.modelled;
    Problem problem;
    problem.profile = &loaded.profile;
    problem.device = request.device;
    problem.budget_bytes = device.capacity_bytes;
    request.observations.push_back(Observe(problem));
    request.budget_bytes = ResolveBudget(options.budget, device.capacity_bytes,
                                         PeakBytes(loaded.profile));  // the last profile's peak
  }
  request.batch_step = options.batch_step;
  request.most_batch = options.most_batch;
  request.base_batch = options.base_batch;
  if (!options.learning_rate.empty())
    request.learning_rate_nano = ParseLearningRate(options.learning_rate);
  const base::Result<Advice> advice = Advise(request);
  if (!advice) {
    std::printf("no advice: %s\n", advice.text().c_str());
    return 1;
  }
  if (options.json)
    PrintJson(*advice, modelled);
  else
    PrintAdvice(request, *advice, modelled);
  return 0;
}

}  // namespace spillway::cli
