// SuperNeurons' published figures, exact to the digit where possible.
#include <gtest/gtest.h>

#include <cstdio>

#include "scheduler/networks/catalog.h"
#include "tests/bench/planner/superneurons_account.h"

namespace spillway::papers {
namespace {

using namespace scheduler::networks;

std::string Megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(bytes) / (1 << 20));
  return text;
}

TEST(SuperNeuronsAccountTest, AlexNetsBaselineAndLiveness) {
  const SuperNeuronsAccount account(Alexnet(200));
  EXPECT_EQ(account.tensor_count(), 36);
  EXPECT_EQ(Megabytes(account.total_bytes()), "2189.437");
  const MemoryPeak peak = account.LivenessPeak();
  EXPECT_EQ(Megabytes(peak.bytes), "1489.355");
  EXPECT_EQ(peak.step, 32);
  EXPECT_EQ(peak.layer, "POOL5");
  EXPECT_EQ(peak.live_tensors, 17);
}

TEST(SuperNeuronsAccountTest, AlexNetsOffload) {
  const SuperNeuronsAccount account(Alexnet(200));
  EXPECT_EQ(Megabytes(account.OutputBytes("CONV1")), "221.558");
  EXPECT_EQ(Megabytes(account.OutputBytes("CONV2")), "142.383");
  EXPECT_EQ(Megabytes(account.OutputBytes("CONV3")), "49.512");
  const MemoryPeak peak = account.OffloadPeak();
  // The paper says 1132.155: it subtracts a rounded 357.2.
  EXPECT_EQ(Megabytes(peak.bytes), "1132.056");
  EXPECT_EQ(peak.step, 39);
  EXPECT_EQ(peak.layer, "POOL2");
  EXPECT_EQ(Megabytes(account.OffloadBytesAt(32)), "1026.392");
}

TEST(SuperNeuronsAccountTest, AlexNetsRecomputation) {
  const SuperNeuronsAccount account(Alexnet(200));
  EXPECT_EQ(Megabytes(account.LayerPeakBytes()), "886.230");
  const RecomputeAccount speed = account.Recompute(RecomputeMode::kSpeed);
  EXPECT_EQ(speed.extra_forwards, 14);
  EXPECT_EQ(Megabytes(speed.peak.bytes), "993.018");
  const RecomputeAccount memory = account.Recompute(RecomputeMode::kMemory);
  EXPECT_EQ(memory.extra_forwards, 23);
  EXPECT_EQ(Megabytes(memory.peak.bytes), "886.230");
  EXPECT_EQ(memory.peak.step, 44);
  EXPECT_EQ(memory.peak.layer, "LRN1");
  const RecomputeAccount cost_aware = account.Recompute(RecomputeMode::kCostAware);
  EXPECT_EQ(cost_aware.extra_forwards, 17);
  EXPECT_EQ(Megabytes(cost_aware.peak.bytes), "886.230");
}

TEST(SuperNeuronsAccountTest, ResNetsRecomputation) {
  const SuperNeuronsAccount fifty(Resnet(*ResnetShape(50), 32, ResNetVariant::kSuperNeurons));
  EXPECT_EQ(fifty.Recompute(RecomputeMode::kSpeed).extra_forwards, 84);
  EXPECT_EQ(fifty.Recompute(RecomputeMode::kMemory).extra_forwards, 118);
  EXPECT_EQ(fifty.Recompute(RecomputeMode::kCostAware).extra_forwards, 85);
  const SuperNeuronsAccount deep(Resnet(*ResnetShape(101), 32, ResNetVariant::kSuperNeurons));
  EXPECT_EQ(deep.Recompute(RecomputeMode::kSpeed).extra_forwards, 169);
  EXPECT_EQ(deep.Recompute(RecomputeMode::kMemory).extra_forwards, 237);
  EXPECT_EQ(deep.Recompute(RecomputeMode::kCostAware).extra_forwards, 170);
}

}  // namespace
}  // namespace spillway::papers
