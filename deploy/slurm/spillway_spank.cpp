// The SPANK plugin: `--gpu-mem` for srun, sbatch and salloc, and shards turned into budgets.
//
// slurmctld's words are trusted, a job's environment is not. Slurm loads this library into srun,
// sbatch and salloc (the user's), and as root into slurmd, its prolog and epilog, and slurmstepd.
// Each calls on one thread.
//
//  job_prolog    tells the agent the job's terms, or to forget an earlier job of this number
//  init_post_opt in slurmstepd: tells the agent the step's bounds
//  task_init     preloads Spillway into the task; a step without a bound does not begin
//  exit          in slurmstepd: forgets the step
//  job_epilog    forgets the job, and logs its totals
//
// Invariants
//  1. A step that asks for memory begins only if the agent binds its control group to a budget.
//  2. The job's environment decides nothing but whether a step is preloaded.
extern "C" {
#include <slurm/spank.h>
}
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/environment.h"
#include "base/file.h"
#include "base/framework_settings.h"
#include "deploy/agent/agent_request.h"
#include "deploy/slurm/controller.h"
#include "deploy/slurm/memory_request.h"
#include "deploy/slurm/plugin_settings.h"
#include "deploy/slurm/slurm_names.h"
#include "deploy/slurm/totals_log.h"

#define SPILLWAY_SPANK_EXPORT __attribute__((visibility("default")))

extern "C" {
SPILLWAY_SPANK_EXPORT extern const char plugin_name[], plugin_type[];
SPILLWAY_SPANK_EXPORT extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(spillway, 1)
}

namespace spillway::slurm {
namespace {

using deploy::AskAgent;
using deploy::Patience;
using deploy::StatusOf;
using deploy::TellAgent;

constexpr char kShards[] = "SLURM_SHARDS_ON_NODE";

// This process's; of slurmstepd, one step's.
struct Plugin {
  PluginSettings settings;
  std::optional<MemoryRequest> request;  // of --gpu-mem; unknown in prolog and epilog
  bool step_is_managed = false;
  std::string why_not_bound;  // the step; empty: it is
} plugin;

deploy::AgentAddress Agent() { return {plugin.settings.socket, "spillway_spank"}; }

int TakeOption(int, const char* text, int is_remote);

char option_name[] = "gpu-mem", option_value[] = "SIZE[,min=SIZE][,weight=N]",
     option_help[] =
         "device memory on each GPU; a program that wants more keeps the rest in host memory. min: "
         "kept for the job; weight: its share beside other jobs";
spank_option option = {option_name, option_value, option_help, 1, 0, TakeOption};

// Users read srun's, sbatch's and a task's standard error; the others have slurmd's log.
int Fail(const std::string& text) {
  const spank_context_t context = spank_context();
  const bool is_daemon = context == S_CTX_SLURMD || context == S_CTX_JOB_SCRIPT;
  (is_daemon ? slurm_error : slurm_spank_log)("spillway: %s", text.c_str());
  return -1;
}

bool TakeSettings(int count, char** words) {
  const base::Result<PluginSettings> parsed = ParseSettings({words, static_cast<size_t>(count)});
  if (!parsed) {
    Fail("plugstack.conf: " + parsed.text());
    return false;
  }
  plugin.settings = *parsed;
  return true;
}

int TakeOption(int, const char* text, int) {
  const base::Result<MemoryRequest> request = ParseMemoryRequest(text == nullptr ? "" : text);
  if (!request) return Fail("--gpu-mem: " + request.text());
  plugin.request = *request;
  return 0;
}

// In prolog and epilog. Nullopt: the user gave none.
std::optional<MemoryRequest> RequestOf(spank_t spank) {
  char* text = nullptr;
  if (spank_option_getopt(spank, &option, &text) != ESPANK_SUCCESS || text == nullptr)
    return std::nullopt;
  return ParseMemoryRequest(text).optional();
}

uint32_t NumberOf(spank_t spank, spank_item_t item) {
  uint32_t number = 0;
  return spank_get_item(spank, item, &number) == ESPANK_SUCCESS ? number : 0;
}

bool HasVariable(spank_t spank, const char* name) {
  char value[8];
  const spank_err_t found = spank_getenv(spank, name, value, sizeof value);
  return found == ESPANK_SUCCESS || found == ESPANK_NOSPACE;
}

void Set(spank_t spank, const char* name, const std::string& value) {
  spank_setenv(spank, name, value.c_str(), 1);
}

protocol::ExpectJob Expecting(const std::optional<MemoryRequest>& request) {
  protocol::ExpectJob wanted;
  if (!request) return wanted;
  wanted.limit_bytes = request->limit_bytes;
  wanted.guaranteed_bytes = request->guaranteed_bytes.value_or(protocol::kUnchanged);
  wanted.weight = request->weight.value_or(-1);
  return wanted;
}

// Slurm's name of it in the prolog. slurmstepd has none before its tasks; the host's is the usual
// one.
std::string ThisNode() {
  const char* const set = std::getenv("SLURMD_NODENAME");
  if (set != nullptr) return set;
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return std::string(name, std::strcspn(name, "."));
}

// The job's terms: what it asks for, within its shards. Nullopt: it has no budget.
base::Result<std::optional<protocol::ExpectJob>> TermsOf(
    uint32_t job, const std::optional<MemoryRequest>& request) {
  int64_t shards = 0;
  if (plugin.settings.shard_bytes) {
    const base::Result<int64_t> found = ShardsOnNode(job, ThisNode());
    if (!found) return found.status();
    shards = *found;
  }
  if (!request && shards == 0) return std::optional<protocol::ExpectJob>();
  protocol::ExpectJob wanted = Expecting(request);
  if (shards > 0) {
    const int64_t most_bytes =
        std::min(shards * *plugin.settings.shard_bytes, protocol::kMostBytes);
    wanted.limit_bytes = request ? std::min(wanted.limit_bytes, most_bytes) : most_bytes;
    wanted.guaranteed_bytes = std::min(wanted.guaranteed_bytes, most_bytes);
  }
  wanted.job = JobName(job);
  return std::optional(wanted);
}

base::Status BeginJob(spank_t spank) {
  const uint32_t job = NumberOf(spank, S_JOB_ID);
  const auto wanted = TermsOf(job, RequestOf(spank));
  if (!wanted) {
    Fail(wanted.text());  // its steps ask again
    return base::Ok();
  }
  if (*wanted) return StatusOf(TellAgent(Agent(), **wanted));
  // After a crash of the node, an earlier job of this number may be expected still.
  static_cast<void>(AskAgent(Agent(), protocol::ForgetJob{.job = JobName(job)}, Patience::kNone));
  return base::Ok();
}

// Slurm 22.05 skips the prolog of a job that it requeues at once, and the agent may have lost its
// record. Then the step states its own request for the job, within the shards.
base::Status BeginUnexpectedStep(spank_t spank, const protocol::ExpectJob& step) {
  const auto job = TermsOf(NumberOf(spank, S_JOB_ID), plugin.request);
  if (!job) return job.status();
  plugin.step_is_managed = job->has_value();
  if (!plugin.step_is_managed) return base::Ok();  // its environment has another job's shards
  base::Status begun = StatusOf(TellAgent(Agent(), **job));
  return begun.ok() ? StatusOf(TellAgent(Agent(), step)) : begun;
}

base::Status BeginStep(spank_t spank) {
  const uint32_t job = NumberOf(spank, S_JOB_ID);
  const base::Result<std::string> groups = base::ReadFile("/proc/self/cgroup");
  if (!groups || !IsInJob(*groups, job))
    return base::Error{"Slurm keeps no control group for the job, so no budget can be bound to it",
                       "",
                       "the node needs ProctrackType=proctrack/cgroup, and since Slurm 26.05 "
                       "CgroupJobIdPaths=yes"};
  protocol::ExpectJob wanted = Expecting(plugin.request);
  wanted.job = JobName(job);
  wanted.part = StepName(NumberOf(spank, S_JOB_STEPID));
  const base::Result<protocol::Done> told = TellAgent(Agent(), wanted);
  if (told && told->outcome == protocol::Outcome::kUnknownJob)
    return BeginUnexpectedStep(spank, wanted);
  return StatusOf(told);
}

void EndStep(spank_t spank) {
  const protocol::ForgetJob step = {.job = JobName(NumberOf(spank, S_JOB_ID)),
                                    .part = StepName(NumberOf(spank, S_JOB_STEPID))};
  static_cast<void>(AskAgent(Agent(), step, Patience::kNone));
}

void PrependPreload(spank_t spank) {
  char preload[4096] = "";
  if (spank_getenv(spank, "LD_PRELOAD", preload, sizeof preload) != ESPANK_SUCCESS) *preload = 0;
  if (std::strstr(preload, plugin.settings.library.c_str()) != nullptr) return;
  Set(spank, "LD_PRELOAD", plugin.settings.library + (*preload == 0 ? "" : ":") + preload);
}

// As `spillway run` does; the user's own settings stay.
void SwitchFrameworks(spank_t spank) {
  bool has_own = false;
  for (const char* const name : frameworks::kPyTorchNames) has_own |= HasVariable(spank, name);
  for (const char* const name : frameworks::kPyTorchNames) {
    if (!has_own) Set(spank, name, frameworks::kPerTensor);
  }
  for (const frameworks::Setting& other : frameworks::kOthers)
    spank_setenv(spank, other.name, other.value, 0);
}

base::Status EndJob(spank_t spank) {
  EndedJob ended{.job = NumberOf(spank, S_JOB_ID), .user = NumberOf(spank, S_JOB_UID)};
  const bool may_be_expected = RequestOf(spank) || plugin.settings.shard_bytes;
  const base::Result<protocol::Message> answer =
      AskAgent(Agent(), protocol::ForgetJob{.job = JobName(ended.job)},
               may_be_expected ? Patience::kRestart : Patience::kNone);
  if (!answer && !may_be_expected) return base::Ok();
  if (!answer) return answer.status();
  const auto* totals = std::get_if<protocol::JobTotals>(&*answer);
  if (totals == nullptr) return base::Ok();  // it had no budget
  ended.totals = *totals;
  const std::string line = TotalsLine(ended);
  if (!plugin.settings.log.empty()) return AppendToLog(plugin.settings.log, line, time(nullptr));
  slurm_info("spillway: %s", line.c_str());
  return base::Ok();
}

}  // namespace
}  // namespace spillway::slurm

using namespace spillway::slurm;

extern "C" {

SPILLWAY_SPANK_EXPORT int slurm_spank_init(spank_t spank, int count, char** words) {
  if (!TakeSettings(count, words)) return -1;
  return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

SPILLWAY_SPANK_EXPORT int slurm_spank_job_prolog(spank_t spank, int count, char** words) {
  if (!TakeSettings(count, words)) return -1;  // Slurm calls no init here
  const auto begun = BeginJob(spank);
  return begun.ok() ? 0 : Fail(begun.text());
}

// A failure here would make Slurm drain the node; the task tells it.
SPILLWAY_SPANK_EXPORT int slurm_spank_init_post_opt(spank_t spank, int, char**) {
  if (spank_context() != S_CTX_REMOTE || StepName(NumberOf(spank, S_JOB_STEPID)).empty()) return 0;
  plugin.step_is_managed =
      plugin.request || (plugin.settings.shard_bytes && HasVariable(spank, kShards));
  if (plugin.step_is_managed) plugin.why_not_bound = BeginStep(spank).text();
  return 0;
}

SPILLWAY_SPANK_EXPORT int slurm_spank_task_init(spank_t spank, int, char**) {
  if (!plugin.step_is_managed) return 0;
  PrependPreload(spank);
  SwitchFrameworks(spank);
  Set(spank, spillway::environment::kAgent, plugin.settings.socket);
  Set(spank, spillway::environment::kAgentRequired, "1");
  if (!plugin.why_not_bound.empty() && plugin.request)  // Slurm goes on if the plugin is optional
    Set(spank, spillway::environment::kBudget, std::to_string(plugin.request->limit_bytes));
  return plugin.why_not_bound.empty() ? 0 : Fail(plugin.why_not_bound);
}

SPILLWAY_SPANK_EXPORT int slurm_spank_exit(spank_t spank, int, char**) {
  if (spank_context() != S_CTX_REMOTE || !plugin.step_is_managed) return 0;
  EndStep(spank);
  return 0;
}

SPILLWAY_SPANK_EXPORT int slurm_spank_job_epilog(spank_t spank, int count, char** words) {
  if (!TakeSettings(count, words)) return 0;
  const auto ended = EndJob(spank);
  if (!ended.ok()) Fail(ended.text());
  return 0;  // the node is sound
}
}
