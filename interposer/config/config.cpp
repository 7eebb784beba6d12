#include "interposer/config/config.h"

#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <charconv>
#include <climits>
#include <cstring>
#include <memory>
#include <new>

#include "base/environment.h"
#include "interposer/config/job_environment.h"

namespace spillway::interposer {
namespace {

class Reader {
 public:
  Reader(Environment environment, Config* config) : environment_(environment), config_(config) {}

  std::string Text(const char* name) { return Set(name) ? environment_(name) : ""; }

  std::optional<uint64_t> PositiveNumber(const char* name, uint64_t largest) {
    if (!Set(name)) return std::nullopt;
    const char* const text = environment_(name);
    const char* const end = text + strlen(text);
    uint64_t number = 0;
    const auto [rest, error] = std::from_chars(text, end, number);
    if (error == std::errc() && rest == end && number > 0 && number <= largest) return number;
    Complain(name, "is not a positive whole number in range");
    return std::nullopt;
  }

  bool Flag(const char* name) {
    if (!Set(name) || strcmp(environment_(name), "0") == 0) return false;
    if (strcmp(environment_(name), "1") == 0) return true;
    Complain(name, "is neither 0 nor 1");
    return false;
  }

  ParkChoice Park(const char* name) {
    if (!Set(name) || strcmp(environment_(name), "auto") == 0) return ParkChoice::kAuto;
    if (strcmp(environment_(name), "host") == 0) return ParkChoice::kHost;
    if (strcmp(environment_(name), "off") == 0) return ParkChoice::kOff;
    Complain(name, "is none of auto, host and off");
    return ParkChoice::kAuto;
  }

  // A size counts as kFit.
  WorkspaceChoice Workspace(const char* name, std::optional<size_t>* limit_bytes) {
    if (!Set(name) || strcmp(environment_(name), "fit") == 0) return WorkspaceChoice::kFit;
    if (strcmp(environment_(name), "as-bare") == 0) return WorkspaceChoice::kAsBare;
    const char* const text = environment_(name);
    const char* const end = text + strlen(text);
    size_t bytes = 0;
    const auto [rest, error] = std::from_chars(text, end, bytes);
    if (error == std::errc() && rest == end)
      *limit_bytes = bytes;
    else
      Complain(name, "is neither fit, nor as-bare, nor a number of bytes");
    return WorkspaceChoice::kFit;
  }

  LearnChoice Learn(const char* name) {
    if (!Set(name) || strcmp(environment_(name), "auto") == 0) return LearnChoice::kAuto;
    if (strcmp(environment_(name), "off") == 0) return LearnChoice::kOff;
    if (strcmp(environment_(name), "always") == 0) return LearnChoice::kAlways;
    if (strcmp(environment_(name), "wait") == 0) return LearnChoice::kWait;
    Complain(name, "is none of auto, off, always and wait");
    return LearnChoice::kAuto;
  }

 private:
  // An empty variable counts as unset, as for the dynamic loader.
  bool Set(const char* name) const {
    return environment_(name) != nullptr && environment_(name)[0] != '\0';
  }

  void Complain(const char* name, const char* what) {
    config_->problems.push_back(std::string(name) + "=" + environment_(name) + " " + what +
                                "; it is ignored");
  }

  const Environment environment_;
  Config* const config_;
};

// Somebody meant a limit, so silence would be wrong. Beside a budget only the driver's limit
// counts.
void ComplainOfLimits(Config& config) {
  const std::vector<base::ExternalProblem>& problems = config.external_limits.problems();
  for (const base::ExternalProblem& problem : problems) {
    if (!config.budget_bytes || problem.source == base::ExternalLimits::kDriversSource)
      config.problems.push_back(problem.text);
  }
  if (!problems.empty() && config.external_limits.empty() && config.agent.empty() &&
      !config.budget_bytes)
    config.problems.emplace_back("no other limit is set, so the job may use the whole device");
}

}  // namespace

Config ReadConfig(Environment environment) {
  Config config;
  Reader reader(environment, &config);
  config.budget_bytes = reader.PositiveNumber(environment::kBudget, UINT64_MAX);
  config.external_limits = base::ExternalLimits::Read(environment);
  config.budget_schedule = reader.Text(environment::kBudgetSchedule);
  config.host_limit_bytes = reader.PositiveNumber(environment::kHostLimit, UINT64_MAX);
  config.park = reader.Park(environment::kPark);
  config.workspace = reader.Workspace(environment::kWorkspace, &config.workspace_limit_bytes);
  config.learn = reader.Learn(environment::kLearn);
  config.drops_eagerly = reader.Text(environment::kRecompute) == "eager";
  config.repeats_kernels = reader.Text(environment::kExperiments) != "0";
  config.lends_pools = reader.Text(environment::kLendPools) == "1";
  config.strategy = reader.Text(environment::kStrategy);
  config.plan_store_path = reader.Text(environment::kPlanStore);
  config.report_path = reader.Text(environment::kReport);
  config.trace_path = reader.Text(environment::kTrace);
  config.events_path = reader.Text(environment::kEvents);
  config.agent = reader.Text(environment::kAgent);
  config.agent_required = reader.Flag(environment::kAgentRequired);
  if (config.agent_required && config.agent.empty()) config.agent = environment::kDefaultSocket;
  ComplainOfLimits(config);
  config.peak_path = reader.Text(environment::kPeakFile);
  config.call_sites_every = reader.PositiveNumber(environment::kCallSites, UINT64_MAX);
  config.shows_progress = reader.Flag(environment::kProgress);
  config.shows_summary = reader.Flag(environment::kSummary);
  config.job_pid = reader.PositiveNumber(environment::kJobPid, INT_MAX);
  return config;
}

// Racing threads read equal values. The first to publish wins, and prints the problems.
const Config& ProcessConfig() {
  static constinit std::atomic<const Config*> published{nullptr};
  const Config* config = published.load(std::memory_order_acquire);
  if (config != nullptr) return *config;

  const JobEnvironment environment;
  const auto value = [&](const char* name) { return environment.Value(name); };
  auto made = std::make_unique<const Config>(ReadConfig(value));
  if (!published.compare_exchange_strong(config, made.get())) return *config;
  for (const std::string& problem : made->problems)
    fprintf(stderr, "spillway: %s\n", problem.c_str());
  return *made.release();
}

}  // namespace spillway::interposer
