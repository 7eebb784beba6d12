#include "agent/node/table/unknown_devices.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

using Names = std::vector<std::string>;

TEST(UnknownDevicesTest, ListsADeviceOnce) {
  UnknownDevices devices;

  EXPECT_TRUE(devices.Add("GPU-a", 1000));
  EXPECT_FALSE(devices.Add("GPU-a", 1001));

  EXPECT_EQ(devices.Names(), Names{"GPU-a"});
}

TEST(UnknownDevicesTest, AUserReplacesOnlyItsOwn) {
  UnknownDevices devices;
  devices.Add("GPU-other", 1001);

  for (const char* name : {"GPU-a", "GPU-b", "GPU-c"}) devices.Add(name, 1000);

  EXPECT_EQ(devices.Names(), (Names{"GPU-other", "GPU-b", "GPU-c"}));
}

TEST(UnknownDevicesTest, ManyUsersListNoMoreThanSixteen) {
  UnknownDevices devices;

  for (uid_t uid = 0; uid < 20; ++uid) devices.Add("GPU-" + std::to_string(uid), uid);

  EXPECT_EQ(devices.Names().size(), 16U);
  EXPECT_EQ(devices.Names().front(), "GPU-4");
}

TEST(UnknownDevicesTest, NamesADeviceAsNvidiaSmiDoes) {
  EXPECT_EQ(TextOf({0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 1, 2, 3, 4, 5, 6, 7}),
            "GPU-01234567-89ab-cdef-0001-020304050607");
}

}  // namespace
}  // namespace spillway::agent
