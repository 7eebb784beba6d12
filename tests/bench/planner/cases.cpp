#include "tests/bench/planner/cases.h"

#include <utility>

#include "tests/bench/planner/paper_figures.h"

namespace spillway::papers {

using namespace scheduler;

namespace {

constexpr double kAutoSwapLinkBytesPerSecond = 10.4e9;  // of the paper's machine
constexpr const char* kAutoSwapDevice = "1080ti";
constexpr int64_t kAutoSwapBatch = 100;

}  // namespace

const std::vector<Case>& ComparedCases() {
  static const std::vector<Case> cases = {
      {"alexnet", "k40c", 200},  {"vgg16", "h200", 64},         {"resnet50", "h200", 64},
      {"resnet152", "a100", 32}, {"inceptionv4", "1080ti", 32}, {"densenet121", "h200", 32},
      {"bert_base", "a100", 32}, {"gpt2_small", "a100", 8}};
  return cases;
}

std::vector<AutoSwapCase> AutoSwapCases() {
  std::vector<AutoSwapCase> cases;
  for (const PaperFigure& figure : PaperSection("autoswap")) {
    if (figure.column != "cudaMalloc ms") continue;
    const double speed_up = PaperDecimal("autoswap", figure.row, "speed-up");
    cases.push_back({figure.row, static_cast<int64_t>(std::stod(figure.figure) / speed_up * 1e6),
                     PaperDecimal("autoswap", figure.row, "load MB"),
                     PaperDecimal("autoswap", figure.row, "reduced MB")});
  }
  return cases;
}

Modelled AutoSwapCase::Model() const {
  IterationProfile profile = ProfileOf(network, kAutoSwapDevice, kAutoSwapBatch, iteration_ns);
  DeviceModel device = DeviceOf(kAutoSwapDevice);
  const double scale = static_cast<double>(PeakBytes(profile)) / 1048576 / load_mb;
  const auto rate = static_cast<int64_t>(kAutoSwapLinkBytesPerSecond * scale);
  device.to_host_bytes_per_second = device.to_device_bytes_per_second = rate;
  device.to_host_both_bytes_per_second = device.to_device_both_bytes_per_second = rate;
  return Modelled(std::move(profile), device);
}

}  // namespace spillway::papers
