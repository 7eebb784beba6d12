#include "agent/pool/topology.h"

#include <gtest/gtest.h>

#include "tests/support/paths.h"

namespace spillway::agent {
namespace {

const std::string kTwoPackages = test::Fixture("topology/two_packages.xml");

TEST(TopologyTest, DeviceIsNearTheNodeOfItsPackage) {
  const auto topology = Topology::FromXml(kTwoPackages);
  ASSERT_NE(topology, nullptr);

  EXPECT_EQ(topology->Nodes(), (std::vector<int>{0, 1}));
  EXPECT_EQ(topology->NodeNear("0000:81:00.0"), 1);
  EXPECT_EQ(topology->NodeNear("00000000:81:00.0"), 1);
}

TEST(TopologyTest, UnknownDevicesAreNearNoNode) {
  const auto topology = Topology::FromXml(kTwoPackages);
  ASSERT_NE(topology, nullptr);

  EXPECT_EQ(topology->NodeNear("0000:82:00.0"), kAnyNode);
  EXPECT_EQ(topology->NodeNear("nonsense"), kAnyNode);
}

TEST(TopologyTest, NothingIsBoundToNodesOfADescribedMachine) {
  const auto topology = Topology::FromXml(kTwoPackages);
  ASSERT_NE(topology, nullptr);
  alignas(4096) static char memory[4096];

  EXPECT_FALSE(topology->Bind(memory, sizeof memory, 1));
}

TEST(TopologyTest, FileWithoutAMachineIsRefused) {
  EXPECT_EQ(Topology::FromXml("/dev/null"), nullptr);
}

}  // namespace
}  // namespace spillway::agent
