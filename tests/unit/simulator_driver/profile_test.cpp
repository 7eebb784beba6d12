#include "simulator/driver/machine/profile.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/support/paths.h"

namespace spillway::simulator {
namespace {

const std::string kFolder = test::SourcePath("simulator/profiles");

class EveryProfileTest : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryProfileTest, IsCompleteAndPlausible) {
  const base::Result<Profile> loaded = LoadProfile(GetParam(), kFolder);

  ASSERT_TRUE(loaded) << loaded.text();
  const Profile& profile = *loaded;
  EXPECT_EQ(profile.name, GetParam());
  EXPECT_GE(profile.capacity_bytes, std::uint64_t{8} << 30);
  EXPECT_GT(profile.memory_bytes_per_second, profile.h2d_bytes_per_second);
  EXPECT_LE(profile.h2d_both_bytes_per_second, profile.h2d_bytes_per_second);
  EXPECT_LE(profile.d2h_both_bytes_per_second, profile.d2h_bytes_per_second);
  EXPECT_GT(profile.api_call_ns, 0u);
}

INSTANTIATE_TEST_SUITE_P(Profiles, EveryProfileTest,
                         ::testing::Values("k40c", "m40", "1080ti", "a100", "h100", "h200"),
                         [](const auto& info) { return "Gpu" + std::string(info.param); });

TEST(ProfileTest, UnknownNameListsKnownNames) {
  const std::string error = LoadProfile("h300", kFolder).text();

  EXPECT_NE(error.find("h300"), std::string::npos);
  EXPECT_NE(error.find("known: 1080ti a100 h100 h200 k40c m40"), std::string::npos) << error;
}

class ProfileFileTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& text) {
    const std::string path = ::testing::TempDir() + "/own-" + std::to_string(getpid()) + ".profile";
    std::ofstream(path) << text;
    const base::Result<Profile> loaded = LoadProfile(path, kFolder);
    EXPECT_FALSE(loaded);
    std::remove(path.c_str());
    return loaded.text();
  }
};

TEST_F(ProfileFileTest, MissingLineIsNamed) {
  EXPECT_NE(ErrorOf("device_name = Half a GPU\n").find("'api_call_ns' is missing"),
            std::string::npos);
}

TEST_F(ProfileFileTest, AnUnknownKeyIsNamedWithItsLine) {
  EXPECT_NE(ErrorOf("# own\nwarp_speed = 9\n").find("line 2: unknown key 'warp_speed'"),
            std::string::npos);
}

TEST_F(ProfileFileTest, AValueThatIsNoNumberIsNamed) {
  EXPECT_NE(ErrorOf("multiprocessors = 7x\n").find("'multiprocessors' is not a number"),
            std::string::npos);
  EXPECT_NE(ErrorOf("multiprocessors = many\n").find("'multiprocessors' is not a number"),
            std::string::npos);
}

}  // namespace
}  // namespace spillway::simulator
