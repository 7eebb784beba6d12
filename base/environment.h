// Every environment variable that Spillway's parts use to talk to each other, in one list.
//
// Set by `spillway run` (cli), read by the preload library (interposer/config) and the simulator.
// Users set none of them by hand, except in tests. Sizes are decimal byte counts; paths are
// absolute; unset means the default.
#pragma once

namespace spillway::environment {

// Preload library.
inline constexpr char kDriver[] = "SPILLWAY_DRIVER";  // path of the real libcuda.so.1
inline constexpr char kBudget[] = "SPILLWAY_BUDGET";  // device bytes; default: the whole device
inline constexpr char kBudgetSchedule[] =
    "SPILLWAY_BUDGET_SCHEDULE";  // for tests, "launch:bytes,...": the budget changes at these
                                 // launches
inline constexpr char kHostLimit[] =
    "SPILLWAY_HOST_LIMIT";  // host bytes for evicted data; default: 80 % of free
inline constexpr char kPark[] = "SPILLWAY_PARK";  // "auto" (default), "host" or "off": see --park
inline constexpr char kLearn[] =
    "SPILLWAY_LEARN";  // "auto" (default), "off", "always", "wait": learn_choice.h
inline constexpr char kRecompute[] =
    "SPILLWAY_RECOMPUTE";  // for tests, "eager": what can be made again is dropped at once; default
                           // "plan"
inline constexpr char kStrategy[] =
    "SPILLWAY_STRATEGY";  // who plans what moves; default "spillway"
inline constexpr char kPlanStore[] =
    "SPILLWAY_PLAN_STORE";                            // folder of plans; default: none are kept
inline constexpr char kReport[] = "SPILLWAY_REPORT";  // file for the JSON report at exit
inline constexpr char kTrace[] =
    "SPILLWAY_TRACE";  // file for a trace of what happens, as it happens
inline constexpr char kPeakFile[] =
    "SPILLWAY_PEAK_FILE";  // file that remembers this command's own peak
inline constexpr char kCallSites[] =
    "SPILLWAY_CALL_SITES";  // N: sample every N-th allocation's call site
inline constexpr char kProgress[] = "SPILLWAY_PROGRESS";  // "1": a progress line on the terminal
inline constexpr char kSummary[] = "SPILLWAY_SUMMARY";  // "1": a summary on standard error at exit
inline constexpr char kSocket[] =
    "SPILLWAY_SOCKET";  // the node agent's; default /run/spillway/agent.sock
inline constexpr char kDefaultSocket[] = "/run/spillway/agent.sock";
inline constexpr char kAgent[] =
    "SPILLWAY_AGENT";  // socket of the agent to follow; default: none is followed
inline constexpr char kAgentRequired[] =
    "SPILLWAY_AGENT_REQUIRED";  // "1": no device memory but what that agent grants
inline constexpr char kJobPid[] =
    "SPILLWAY_JOB_PID";  // the launched process; its children get own reports

// Simulated GPU.
inline constexpr char kSimProfile[] =
    "SPILLWAY_SIM_PROFILE";  // name in the profiles folder or a path; default h200
inline constexpr char kSimCapacity[] =
    "SPILLWAY_SIM_CAPACITY";  // device bytes; default: the profile's
inline constexpr char kSimDevices[] = "SPILLWAY_SIM_DEVICES";  // how many such devices; default 1
inline constexpr char kSimClock[] = "SPILLWAY_SIM_CLOCK";      // "virtual" (default) or "real"
inline constexpr char kSimCompute[] = "SPILLWAY_SIM_COMPUTE";  // "full" (default) or "tags"
inline constexpr char kSimNode[] =
    "SPILLWAY_SIM_NODE";  // file of the machine that several processes share
inline constexpr char kSimSlot[] =
    "SPILLWAY_SIM_SLOT";  // "2/4": the second of four that begin together
inline constexpr char kSimHostNuma[] =
    "SPILLWAY_SIM_HOST_NUMA";  // "0": no host memory at device addresses
inline constexpr char kSimKernels[] = "SPILLWAY_SIM_KERNELS";    // colon-separated kernel plug-ins
inline constexpr char kSimTimeline[] = "SPILLWAY_SIM_TIMELINE";  // file for what it did when (CSV)
inline constexpr char kSimStats[] =
    "SPILLWAY_SIM_STATS";  // file for the simulator's own statistics (JSON) at exit

}  // namespace spillway::environment
