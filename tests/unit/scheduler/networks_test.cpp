#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "scheduler/networks/catalog.h"
#include "scheduler/networks/devices.h"
#include "scheduler/networks/training_step.h"
#include "tests/support/paths.h"

namespace spillway::scheduler::networks {
namespace {

std::string Joined(const std::vector<BufferId>& ids) {
  std::string text;
  for (BufferId id : ids) text += (text.empty() ? "" : ",") + std::to_string(id.index);
  return text;
}

// In the format of network_digests.py.
std::string TextOf(const TrainingStep& step) {
  std::ostringstream text;
  for (const Buffer& buffer : step.profile.buffers)
    text << buffer.name << '|' << static_cast<int>(buffer.kind) << '|' << buffer.size_bytes << '\n';
  for (size_t i = 0; i < step.work.size(); ++i) {
    const Operation& operation = step.profile.operations[i];
    text << operation.name << '|' << static_cast<int>(operation.phase) << '|'
         << Joined(operation.reads) << '|' << Joined(operation.writes) << '|' << step.work[i].flops
         << '|' << step.work[i].moved_bytes << '|';
    const char* separator = "";
    for (const Algorithm& algorithm : step.work[i].algorithms) {
      text << separator << algorithm.name << ' ' << algorithm.workspace_bytes << ' '
           << algorithm.speed_percent;
      separator = ";";
    }
    text << '\n';
  }
  return text.str();
}

uint64_t Fnv1a(const std::string& text) {
  uint64_t value = 0xCBF29CE484222325;
  for (char c : text) value = (value ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return value;
}

std::string DigestLine(const std::string& name) {
  const TrainingStep step = MakeTrainingStep(*MakeNetwork(name, 0), UpdatePlace::kAtEnd);
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(Fnv1a(TextOf(step))));
  return name + "," + std::to_string(step.profile.buffers.size()) + "," +
         std::to_string(step.profile.operations.size()) + "," + hash;
}

TEST(NetworksTest, EqualAnIndependentGenerator) {
  std::ifstream file(test::Fixture("network_digests.csv"));
  int networks = 0;
  for (std::string line; std::getline(file, line); ++networks) {
    const std::string name = line.substr(0, line.find(','));
    ASSERT_TRUE(MakeNetwork(name, 0).has_value()) << name;
    EXPECT_EQ(DigestLine(name), line);
  }
  EXPECT_EQ(networks, 24);
}

TEST(NetworksTest, EveryNetworkIsAValidProfileWithEitherUpdatePosition) {
  for (const std::string& name : NetworkNames()) {
    for (UpdatePlace place : {UpdatePlace::kAtEnd, UpdatePlace::kAfterGradient}) {
      TrainingStep step = MakeTrainingStep(*MakeNetwork(name, 0), place);
      SetDurations(step, {10'000'000'000'000, 500'000'000'000, 2'000});
      EXPECT_EQ(CheckProfile(step.profile).text(), "") << name;
      EXPECT_EQ(step.profile.operations.size(), step.work.size());
    }
  }
}

int64_t ParametersOf(const LayerGraph& graph) {
  int64_t sum = 0;
  for (const Layer& layer : graph.layers()) sum += layer.parameters;
  return sum;
}

TEST(NetworksTest, HaveThePublishedParameterCounts) {
  // Convolutions before a batch norm have no bias. Inception comes without auxiliary classifiers.
  EXPECT_EQ(ParametersOf(*MakeNetwork("resnet50", 1)), 25'557'032);
  EXPECT_EQ(ParametersOf(*MakeNetwork("resnet152", 1)), 60'192'808);
  EXPECT_EQ(ParametersOf(*MakeNetwork("vgg16", 1)), 138'357'544);
  EXPECT_EQ(ParametersOf(*MakeNetwork("vgg19", 1)), 143'667'240);
  EXPECT_EQ(ParametersOf(*MakeNetwork("densenet121", 1)), 7'978'856);
  EXPECT_EQ(ParametersOf(*MakeNetwork("densenet161", 1)), 28'681'000);
  EXPECT_EQ(ParametersOf(*MakeNetwork("inceptionv3", 1)), 23'834'568);
}

TEST(NetworksTest, ResNetGrowsToAnyDepthOfItsThirdStage) {
  EXPECT_EQ(ResnetShape(152)->blocks_per_stage, (std::vector<int>{3, 8, 36, 3}));
  EXPECT_EQ(ResnetShape(1001)->depth(), 1001);
  EXPECT_EQ(ResnetShape(1000), std::nullopt);
}

TEST(NetworksTest, UnknownNamesAreNoNetworks) {
  EXPECT_FALSE(MakeNetwork("resnet", 0).has_value());
  EXPECT_FALSE(MakeNetwork("resnet50x", 0).has_value());
  EXPECT_FALSE(MakeNetwork("resnet99999999999", 0).has_value());
  EXPECT_FALSE(MakeNetwork("vgg12", 0).has_value());
}

TEST(NetworksTest, DurationsFollowTheRooflineAndAlgorithmsDivideIt) {
  // Given one convolution that is bound by arithmetic, not by memory
  LayerGraph graph("one", 1);
  graph.Loss(graph.FullyConnected(graph.Conv(graph.Data({1, 8, 8}), 1, 3), 1));
  TrainingStep step = MakeTrainingStep(graph, UpdatePlace::kAtEnd);
  SetDurations(step, {1'000'000'000, 1'000'000'000'000, 5});
  EXPECT_EQ(step.work[0].flops, 2 * 8 * 8 * 9);
  EXPECT_EQ(step.profile.operations[0].duration_ns, 1152 + 5);
  EXPECT_EQ(step.profile.operations[0].workspaces[3].name, "winograd");
  EXPECT_EQ(step.profile.operations[0].workspaces[3].duration_ns, 607 + 5);
}

TEST(DevicesTest, FindsTheSimulatorsProfiles) {
  EXPECT_THAT(DeviceNames(),
              ::testing::ElementsAre("1080ti", "a100", "h100", "h200", "k40c", "m40"));
  for (const std::string& name : DeviceNames()) ASSERT_TRUE(FindDevice(name).has_value()) << name;
  EXPECT_EQ(FindDevice("k40c")->capacity_bytes, 12'079'136'768);
  EXPECT_EQ(FindDevice("k40c")->model.to_host_bytes_per_second, 10'000'000'000);
  EXPECT_FALSE(FindDevice("k41").has_value());
}

TEST(DevicesTest, TextWithAMissingOrInvalidFigureIsNoDevice) {
  const std::string whole =
      "capacity_bytes = 1\nfp32_flops_per_second = 2\nmemory_bytes_per_second = "
      "3\nlaunch_overhead_ns=4\n"
      "d2h_bytes_per_second = 5\nh2d_bytes_per_second = 6\nd2h_both_bytes_per_second = 7\n"
      "h2d_both_bytes_per_second = 8\ncopy_overhead_ns = 9\n";
  EXPECT_EQ(ParseDevice("x", whole)->model.to_device_both_bytes_per_second, 8);
  EXPECT_FALSE(ParseDevice("x", whole.substr(0, whole.size() - 22)).has_value());
  EXPECT_FALSE(ParseDevice("x", "capacity_bytes = -1\n" + whole).has_value());
  EXPECT_FALSE(ParseDevice("x", "capacity_bytes = 12 GB\n" + whole).has_value());
}

}  // namespace
}  // namespace spillway::scheduler::networks
