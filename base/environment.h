// The environment variables through which Spillway's parts talk to each other.
//
// `spillway run` (cli) sets them; the preload library (interposer/config) and the simulator read
// them. Sizes are decimal bytes, paths absolute; unset means the default.
#pragma once

namespace spillway::environment {

inline constexpr char kDriver[] = "SPILLWAY_DRIVER";
inline constexpr char kBudget[] = "SPILLWAY_BUDGET";  // device bytes; default: the whole device
// Tests only, "launch:bytes,...": the budget changes at these launches.
inline constexpr char kBudgetSchedule[] = "SPILLWAY_BUDGET_SCHEDULE";
// Host bytes for evicted data; default: 80 % of free memory.
inline constexpr char kHostLimit[] = "SPILLWAY_HOST_LIMIT";
// "fit" (default), "as-bare", or bytes: see --workspace
inline constexpr char kWorkspace[] = "SPILLWAY_WORKSPACE";
inline constexpr char kPark[] = "SPILLWAY_PARK";  // "auto" (default), "host" or "off": see --park
// "auto" (default), "off", "always" or "wait": see learn_choice.h.
inline constexpr char kLearn[] = "SPILLWAY_LEARN";
// Default "plan". Tests only, "eager": drops at once whatever can be recomputed.
inline constexpr char kRecompute[] = "SPILLWAY_RECOMPUTE";
// "0": kernels that no library documents are never launched a second time, neither to find out what
// they do nor to recompute what they made.
inline constexpr char kExperiments[] = "SPILLWAY_EXPERIMENTS";
inline constexpr char kLendPools[] = "SPILLWAY_LEND_POOLS";
inline constexpr char kStrategy[] = "SPILLWAY_STRATEGY";     // default "spillway"
inline constexpr char kPlanStore[] = "SPILLWAY_PLAN_STORE";  // folder; default: none
inline constexpr char kReport[] = "SPILLWAY_REPORT";         // file for the JSON report at exit
inline constexpr char kTrace[] = "SPILLWAY_TRACE";           // file for the job's trace
// Tests only: file for the job's events as text, until its first plan (docs/trace_format.md).
inline constexpr char kEvents[] = "SPILLWAY_EVENTS";
inline constexpr char kPeakFile[] = "SPILLWAY_PEAK_FILE";    // keeps this command's peak
inline constexpr char kCallSites[] = "SPILLWAY_CALL_SITES";  // N: sample every N-th allocation
inline constexpr char kProgress[] = "SPILLWAY_PROGRESS";     // "1": a progress line on the terminal
inline constexpr char kSummary[] = "SPILLWAY_SUMMARY";  // "1": a summary on standard error at exit
inline constexpr char kSocket[] = "SPILLWAY_SOCKET";    // the agent's; default kDefaultSocket
inline constexpr char kDefaultSocket[] = "/run/spillway/agent.sock";
inline constexpr char kAgent[] = "SPILLWAY_AGENT";  // socket of the agent to follow; default: none
// "1": hold no device memory beyond the agent's grants.
inline constexpr char kAgentRequired[] = "SPILLWAY_AGENT_REQUIRED";
// The launched process; its children write reports of their own.
inline constexpr char kJobPid[] = "SPILLWAY_JOB_PID";

inline constexpr char kSimProfile[] = "SPILLWAY_SIM_PROFILE";    // name or path; default h200
inline constexpr char kSimCapacity[] = "SPILLWAY_SIM_CAPACITY";  // device bytes
inline constexpr char kSimDevices[] = "SPILLWAY_SIM_DEVICES";  // number of such devices; default 1
inline constexpr char kSimClock[] = "SPILLWAY_SIM_CLOCK";      // "virtual" (default) or "real"
inline constexpr char kSimCompute[] = "SPILLWAY_SIM_COMPUTE";  // "full" (default) or "tags"
// File of the management library's limits, a line each: UUID, folder of a control group, soft and
// hard bytes. Unset: a driver without such limits.
inline constexpr char kSimMemoryLimits[] = "SPILLWAY_SIM_MEMORY_LIMITS";
inline constexpr char kSimNode[] = "SPILLWAY_SIM_NODE";  // file shared by processes
// "2/4": the second of four processes that begin together.
inline constexpr char kSimSlot[] = "SPILLWAY_SIM_SLOT";
// "0": host memory cannot be mapped at device addresses.
inline constexpr char kSimHostNuma[] = "SPILLWAY_SIM_HOST_NUMA";
inline constexpr char kSimKernels[] = "SPILLWAY_SIM_KERNELS";  // colon-separated kernel plug-ins
// Colon-separated files of kernels' memory uses, for the compute mode "tags".
inline constexpr char kSimRules[] = "SPILLWAY_SIM_RULES";
inline constexpr char kSimTimeline[] = "SPILLWAY_SIM_TIMELINE";  // file for the timeline (CSV)
inline constexpr char kSimStats[] = "SPILLWAY_SIM_STATS";        // file for statistics (JSON)

}  // namespace spillway::environment
