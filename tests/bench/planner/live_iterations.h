// Long iterations as a live job's planner gets them, without anything that only a model knows.
//
// Pure; any thread. Nothing here ran on a GPU: durations come from a roofline, or from the
// simulator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/learn/iteration_pattern.h"

namespace spillway::papers {

struct LiveIteration {
  std::string name;
  std::shared_ptr<const scheduler::IterationPattern> pattern;
};

// Networks with about so many operations on the H200. Experiments have shown what each kernel does:
// reads are presumed, and each that overwrites one buffer may run again.
LiveIteration DeepGpt2(int64_t operations);
LiveIteration DeepResNet(int64_t operations);  // 10,000: near ResNet-1001

// A recorded PyTorch iteration (tests/fixtures/pytorch), several times in a row as one iteration.
// Nothing is known of its kernels but what calls declared.
LiveIteration RecordedPyTorch(const std::string& name, int64_t operations);

}  // namespace spillway::papers
