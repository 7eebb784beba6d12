// Slots of the device plugin, and the driver's command line.
#include <gtest/gtest.h>

#include <cstdlib>

#include "deploy/kubernetes/driver_options.h"
#include "deploy/kubernetes/gpu_slots.h"

namespace spillway::kubernetes {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

const std::vector<Gpu> kGpus = {{.uuid = "GPU-1", .memory_bytes = 16 * kGi},
                                {.uuid = "GPU-2", .memory_bytes = 16 * kGi}};

TEST(GpuSlotsTest, ListsSlotsOfEachGpu) {
  EXPECT_EQ(SlotsOf(kGpus, 2, true),
            (std::vector<Slot>{
                {"GPU-1-s0", true}, {"GPU-1-s1", true}, {"GPU-2-s0", true}, {"GPU-2-s1", true}}));
  EXPECT_FALSE(SlotsOf(kGpus, 1, false)[0].is_healthy);
}

TEST(GpuSlotsTest, SlotsOfOneGpuAddUp) {
  EXPECT_EQ(*GrantOf({"GPU-1-s0", "GPU-1-s3"}, kGpus, 4), (SlotGrant{8 * kGi, {"GPU-1"}}));
  EXPECT_EQ(*GrantOf({"GPU-1-s0", "GPU-2-s3"}, kGpus, 4), (SlotGrant{4 * kGi, {"GPU-1", "GPU-2"}}));
}

TEST(GpuSlotsTest, RefusesWhatHasNoSingleBudget) {
  EXPECT_EQ(GrantOf({"GPU-1-s0", "GPU-1-s1", "GPU-2-s0"}, kGpus, 4).text(),
            "the container would have unequal numbers of slots on its GPUs: a container has one "
            "budget for each of its GPUs; ask for one slot, or for as many as one GPU has");
  EXPECT_EQ(GrantOf({"GPU-9-s0"}, kGpus, 4).text(), "the agent knows no GPU GPU-9");
  EXPECT_FALSE(GrantOf({}, kGpus, 4).ok());
}

TEST(GpuSlotsTest, PrefersTheFullestGpuWithRoom) {
  const std::vector<std::string> available = {"GPU-1-s0", "GPU-1-s1", "GPU-1-s2", "GPU-2-s1",
                                              "GPU-2-s2"};
  EXPECT_EQ(PreferredSlots(available, {}, 2), (std::vector<std::string>{"GPU-2-s1", "GPU-2-s2"}));
  EXPECT_EQ(PreferredSlots(available, {}, 3),
            (std::vector<std::string>{"GPU-1-s0", "GPU-1-s1", "GPU-1-s2"}));
  EXPECT_EQ(PreferredSlots(available, {"GPU-1-s1"}, 1), (std::vector<std::string>{"GPU-1-s1"}));
}

class DriverOptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("NODE_NAME");
    unsetenv("POD_UID");
  }
  static std::string WhyNot(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "spillway-kubernetes");
    return ReadDriverOptions(arguments).text();
  }
};

TEST_F(DriverOptionsTest, TakesThePodsNamesFromItsEnvironment) {
  setenv("NODE_NAME", "n1", 1);
  setenv("POD_UID", "1f2e", 1);
  const auto options = ReadDriverOptions({"spillway-kubernetes"});
  ASSERT_TRUE(options.ok()) << options.text();
  EXPECT_EQ(options->node, "n1");
  EXPECT_EQ(options->instance, "1f2e");
  EXPECT_TRUE(options->gives_gpus);
}

TEST_F(DriverOptionsTest, SaysWhatIsWrong) {
  EXPECT_EQ(WhyNot({}), "the node's name is missing; say it with --node or NODE_NAME");
  EXPECT_EQ(WhyNot({"--node=n1", "--gpus=take"}),
            "--gpus=take is unknown; there are give and leave");
  EXPECT_EQ(WhyNot({"--node=n1", "--slots=0"}), "--slots=0 is no number from 1 to 128");
  EXPECT_EQ(WhyNot({"--claims=off"}),
            "there is nothing to serve; with --claims=off, add --slots N");
  EXPECT_EQ(WhyNot({"--node=n1", "--cdi=cdi"}),
            "'cdi' is no absolute path: containers and kubelet use it too");
  // Regression: only the texts were compared.
  for (const char* const beside :
       {"/run/spillway/jobs.sock", "/run//spillway/jobs.sock", "/run/spillway/x/../jobs.sock",
        "/proc/self/root/run/spillway/j"})
    EXPECT_EQ(WhyNot({"--node=n1", std::string("--job-socket=") + beside}),
              "the folder of --job-socket has /run/spillway/agent.sock, too: containers mount that "
              "folder, and their root would operate the node; give [agent] job_socket of spillwayd "
              "a folder of its own");
  EXPECT_EQ(WhyNot({"--node=n1", "--instance=../x"}), "'../x' is no name in Kubernetes");
  EXPECT_FALSE(WhyNot({"--node=n1", "more"}).empty());
}

}  // namespace
}  // namespace spillway::kubernetes
