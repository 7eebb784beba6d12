// The papers' figures beside ours, one section each: the output of build/bin/spillway-papers.
//
// Called by papers.cpp on its one thread. The papers' figures and their sources are in
// paper_figures.csv. Durations come from a roofline over the device profiles in simulator/profiles:
// nothing here ran on a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/plan/problem.h"
#include "scheduler/trace/profile.h"
#include "tests/bench/planner/verdicts.h"

namespace spillway::papers {

struct Effort {
  bool quick = false;  // only a few rows of each section, to show that it runs
};

void PrintMinimalloc(Effort effort, Verdicts& verdicts);
void PrintSmartPool(Effort effort, Verdicts& verdicts);
void PrintAutoSwap(Effort effort, Verdicts& verdicts);
void PrintSuperNeurons(Effort effort, Verdicts& verdicts);
void PrintReach(Effort effort, Verdicts& verdicts);
void PrintAccUdnn(Effort effort, Verdicts& verdicts);
void PrintDelta(Effort effort, Verdicts& verdicts);
void PrintHybrid(Effort effort, Verdicts& verdicts);
void PrintStrategies(Effort effort, Verdicts& verdicts);
void PrintPlanningTime(Effort effort, Verdicts& verdicts);
void PrintLiveTime(Effort effort, Verdicts& verdicts);
void PrintWorkspaces(Effort effort, Verdicts& verdicts);
// Pictures in a folder. False if a file cannot be written.
bool DrawWorkspaces(const std::string& folder);

// As the papers' frameworks would run it: full-precision kernels at a share of the device's peaks.
// Ends the program when either name is unknown.
scheduler::IterationProfile ProfileOf(std::string_view network, std::string_view device,
                                      int64_t batch_size,
                                      std::optional<int64_t> iteration_ns = std::nullopt);
scheduler::DeviceModel DeviceOf(std::string_view device);
int64_t CapacityOf(std::string_view device);

// Wall time since an earlier result of this function; the first call passes 0.
double ElapsedMs(double since_ms);

}  // namespace spillway::papers
