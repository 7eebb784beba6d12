// SuperNeurons' published figures, to the digit where they can be reproduced.
#include <gtest/gtest.h>

#include <cstdio>

#include "scheduler/networks/catalog.h"
#include "scheduler/networks/superneurons_account.h"

namespace spillway::scheduler::networks {
namespace {

std::string megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(bytes) / (1 << 20));
  return text;
}

TEST(SuperNeuronsAccountTest, AlexNetsBaselineAndLiveness) {
  const SuperNeuronsAccount account(alexnet(200));
  EXPECT_EQ(account.tensor_count(), 36);
  EXPECT_EQ(megabytes(account.total_bytes()), "2189.437");
  const MemoryPeak peak = account.liveness_peak();
  EXPECT_EQ(megabytes(peak.bytes), "1489.355");
  EXPECT_EQ(peak.step, 32);
  EXPECT_EQ(peak.layer, "POOL5");
  EXPECT_EQ(peak.live_tensors, 17);
}

TEST(SuperNeuronsAccountTest, AlexNetsOffload) {
  const SuperNeuronsAccount account(alexnet(200));
  EXPECT_EQ(megabytes(account.output_bytes("CONV1")), "221.558");
  EXPECT_EQ(megabytes(account.output_bytes("CONV2")), "142.383");
  EXPECT_EQ(megabytes(account.output_bytes("CONV3")), "49.512");
  const MemoryPeak peak = account.offload_peak();
  // The paper says 1132.155: it subtracts a rounded 357.2.
  EXPECT_EQ(megabytes(peak.bytes), "1132.056");
  EXPECT_EQ(peak.step, 39);
  EXPECT_EQ(peak.layer, "POOL2");
  EXPECT_EQ(megabytes(account.offload_bytes_at(32)), "1026.392");
}

TEST(SuperNeuronsAccountTest, AlexNetsRecomputation) {
  const SuperNeuronsAccount account(alexnet(200));
  EXPECT_EQ(megabytes(account.layer_peak_bytes()), "886.230");
  const RecomputeAccount speed = account.recompute(RecomputeMode::kSpeed);
  EXPECT_EQ(speed.extra_forwards, 14);
  EXPECT_EQ(megabytes(speed.peak.bytes), "993.018");
  const RecomputeAccount memory = account.recompute(RecomputeMode::kMemory);
  EXPECT_EQ(memory.extra_forwards, 23);
  EXPECT_EQ(megabytes(memory.peak.bytes), "886.230");
  EXPECT_EQ(memory.peak.step, 44);
  EXPECT_EQ(memory.peak.layer, "LRN1");
  const RecomputeAccount cost_aware = account.recompute(RecomputeMode::kCostAware);
  EXPECT_EQ(cost_aware.extra_forwards, 17);
  EXPECT_EQ(megabytes(cost_aware.peak.bytes), "886.230");
}

TEST(SuperNeuronsAccountTest, ResNetsRecomputation) {
  const SuperNeuronsAccount fifty(resnet(*resnet_shape(50), 32, ResNetVariant::kSuperNeurons));
  EXPECT_EQ(fifty.recompute(RecomputeMode::kSpeed).extra_forwards, 84);
  EXPECT_EQ(fifty.recompute(RecomputeMode::kMemory).extra_forwards, 118);
  EXPECT_EQ(fifty.recompute(RecomputeMode::kCostAware).extra_forwards, 85);
  const SuperNeuronsAccount deep(resnet(*resnet_shape(101), 32, ResNetVariant::kSuperNeurons));
  EXPECT_EQ(deep.recompute(RecomputeMode::kSpeed).extra_forwards, 169);
  EXPECT_EQ(deep.recompute(RecomputeMode::kMemory).extra_forwards, 237);
  EXPECT_EQ(deep.recompute(RecomputeMode::kCostAware).extra_forwards, 170);
}

}  // namespace
}  // namespace spillway::scheduler::networks
