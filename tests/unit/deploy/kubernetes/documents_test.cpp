// Claims and the agent's status as they are read; slices, CDI specifications and the state file as
// they are written.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "deploy/kubernetes/cdi_spec.h"
#include "deploy/kubernetes/claim.h"
#include "deploy/kubernetes/driver_state.h"
#include "deploy/kubernetes/node_devices.h"
#include "deploy/kubernetes/resource_slice.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

constexpr int64_t kGi = int64_t{1} << 30;
constexpr char kUuid[] = "GPU-73696d2d-6832-3030-0000-000000000000";

constexpr char kClaim[] = R"({
  "metadata": {"namespace": "ml", "name": "train-x", "uid": "aa-01"},
  "status": {
    "allocation": {"devices": {
      "results": [
        {"request": "gpu/large", "driver": "spillway.dev", "pool": "n1", "device": "gpu-1", "shareID": "s1",
         "consumedCapacity": {"memory": "8Gi"}},
        {"request": "net", "driver": "other.example", "pool": "n1", "device": "eth0"}],
      "config": [
        {"source": "FromClass", "requests": [], "opaque": {"driver": "spillway.dev", "parameters":
          {"apiVersion": "spillway.dev/v1alpha1", "kind": "MemoryConfig", "weight": 4}}},
        {"source": "FromClaim", "requests": ["gpu"], "opaque": {"driver": "spillway.dev", "parameters":
          {"apiVersion": "spillway.dev/v1alpha1", "kind": "MemoryConfig", "weight": 2}}},
        {"source": "FromClaim", "requests": ["gpu2"], "opaque": {"driver": "spillway.dev", "parameters":
          {"apiVersion": "spillway.dev/v1alpha1", "kind": "MemoryConfig", "weight": 1}}},
        {"source": "FromClaim", "opaque": {"driver": "other.example", "parameters": {"any": 1}}}]}},
    "reservedFor": [{"resource": "pods", "name": "b", "uid": "pod-2"}, {"resource": "pods", "name": "a", "uid": "pod-1"}]}})";

TEST(ClaimTest, ReadsTheDriversOwnResultsAndConfigurations) {
  const base::Result<Claim> claim = ParseClaim(kClaim);
  ASSERT_TRUE(claim.ok()) << claim.text();
  EXPECT_EQ(claim->name, (ClaimName{"ml", "train-x", "aa-01"}));
  EXPECT_EQ(claim->pods, (std::vector<std::string>{"pod-1", "pod-2"}));
  ASSERT_EQ(claim->devices.size(), 1u);
  EXPECT_EQ(claim->devices[0], (AllocatedDevice{.request = "gpu/large",
                                                .pool = "n1",
                                                .device = "gpu-1",
                                                .share_id = "s1",
                                                .counted_bytes = 8 * kGi,
                                                .of_class = {MemoryConfig{.weight = 4}},
                                                .of_claim = {MemoryConfig{.weight = 2}}}));
}

TEST(ClaimTest, SaysWhatIsMissing) {
  json claim = json::parse(kClaim);
  claim["status"].erase("reservedFor");
  EXPECT_EQ(ParseClaim(claim.dump()).text(),
            "the claim is reserved for no pod: a budget is bound to a pod's uid");
  claim["status"].erase("allocation");
  EXPECT_EQ(ParseClaim(claim.dump()).text(), "the claim is not allocated");
  EXPECT_EQ(ParseClaim("nonsense").text(), "the API server's claim is no JSON object");
}

// Regression: such a claim got the whole GPU, which the scheduler had given to others.
TEST(ClaimTest, RefusesAdminAccess) {
  json claim = json::parse(kClaim);
  json& results = claim["status"]["allocation"]["devices"]["results"];
  results[1]["adminAccess"] = true;  // another driver's
  EXPECT_TRUE(ParseClaim(claim.dump()).ok());
  results[0]["adminAccess"] = true;
  EXPECT_EQ(ParseClaim(claim.dump()).text(),
            "request gpu/large has adminAccess: this driver gives memory, and nothing of a device "
            "without a count; leave adminAccess out; `spillway status` on the node shows its "
            "devices");
}

TEST(ClaimTest, NamesTheConfigurationThatIsWrong) {
  json claim = json::parse(kClaim);
  claim["status"]["allocation"]["devices"]["config"][0]["opaque"]["parameters"]["weight"] = -1;
  EXPECT_EQ(ParseClaim(claim.dump()).text(),
            "the device class's configuration: weight: it is no whole number from 1 to 10000");
}

TEST(NodeDevicesTest, ReadsTheAgentsStatus) {
  const auto status = ParseStatus(
      R"({"agent_instance": 7, "draining": true, "devices": [
           {"uuid": "GPU-AA", "model": "H200", "memory_bytes": 1024, "found": true},
           {"uuid": "GPU-BB", "model": "", "memory_bytes": 1, "found": false}],
          "jobs": [{"job": "pod-1234", "pod_uid": "1234-5"}, {"job": "local-1"}], "waiting_pods": ["6-7"]})");
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(status->gpus,
            (std::vector<Gpu>{{.uuid = "GPU-AA", .model = "H200", .memory_bytes = 1024}}));
  EXPECT_TRUE(status->draining);
  EXPECT_EQ(status->pods, (std::set<std::string>{"1234-5"}));
  EXPECT_EQ(status->waiting_pods, (std::set<std::string>{"6-7"}));
  EXPECT_EQ(DeviceNameOf("GPU-AA_1"), "gpu-aa-1");
  EXPECT_FALSE(ParseStatus(R"({"devices": 5})").ok());
}

class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/spillway-kubernetes.XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(FolderTest, FindsBusIdsOfTheKernelModule) {
  std::filesystem::create_directory(folder_ + "/0000:81:00.0");
  ASSERT_TRUE(base::WriteFile(folder_ + "/0000:81:00.0/information",
                              "Model: \t NVIDIA H200\nIRQ:   \t\t 47\nGPU UUID: \t GPU-aa-bb\n"
                              "Bus Location: \t 0000:81:00.0\nDevice Minor: \t 0\n")
                  .ok());
  EXPECT_EQ(PciBusIds(folder_),
            (std::map<std::string, std::string>{{"GPU-aa-bb", "0000:81:00.0"}}));
  EXPECT_TRUE(PciBusIds(folder_ + "/none").empty());
}

TEST(ResourceSliceTest, OffersConsumableMemory) {
  const Gpu gpu{.uuid = kUuid,
                .model = "NVIDIA H200",
                .memory_bytes = 140 * kGi + 1000,
                .pci_bus_id = "0000:81:00.0"};
  const auto text = ResourceSlice({"n1", "node-uid"}, {gpu}, {{"spillway.dev/drained", "by-hand"}});
  ASSERT_TRUE(text.ok());
  const json slice = json::parse(*text);
  EXPECT_EQ(slice["metadata"]["ownerReferences"][0]["uid"], "node-uid");
  EXPECT_EQ(slice["spec"]["pool"],
            json::parse(R"({"name":"n1","generation":1,"resourceSliceCount":1})"));
  EXPECT_EQ(slice["spec"]["devices"], json::parse(R"([{
    "name": "gpu-73696d2d-6832-3030-0000-000000000000",
    "attributes": {"uuid": {"string": "GPU-73696d2d-6832-3030-0000-000000000000"}, "model": {"string": "NVIDIA H200"},
                   "resource.kubernetes.io/pciBusID": {"string": "0000:81:00.0"}},
    "capacity": {"memory": {"value": "140Gi",
      "requestPolicy": {"default": "256Mi", "validRange": {"min": "256Mi", "step": "2Mi"}}}},
    "allowMultipleAllocations": true,
    "taints": [{"key": "spillway.dev/drained", "value": "by-hand", "effect": "NoSchedule"}]}])"));
}

TEST(ResourceSliceTest, RefusesMoreDevicesThanASliceTakes) {
  EXPECT_EQ(ResourceSlice({"n1", "u"}, std::vector<Gpu>(65), {}).text(),
            "the node has 65 GPUs, and a ResourceSlice takes 64");
}

ClaimRecord Record() {
  return {.name = {"ml", "train-x", "aa-01"},
          .devices = {{.request = "gpu",
                       .pool = "n1",
                       .device = "gpu-1",
                       .share_id = "s1",
                       .gpu_uuid = "GPU-1",
                       .terms = {.guaranteed_bytes = 1, .limit_bytes = 2, .priority = 0}}},
          .pods = {"pod-1"}};
}

TEST(CdiSpecTest, MountsAndPreloadsForOneClaim) {
  const json spec = json::parse(ClaimSpec(Record(), {.set_frameworks = false}));
  EXPECT_EQ(spec, json::parse(R"({
    "cdiVersion": "0.5.0", "kind": "k8s.spillway.dev/claim",
    "devices": [{"name": "aa-01-gpu-1", "containerEdits": {
      "env": ["LD_PRELOAD=/usr/lib/spillway/libspillway.so", "SPILLWAY_AGENT=/run/spillway/agent.sock",
              "SPILLWAY_AGENT_REQUIRED=1"],
      "mounts": [
        {"hostPath": "/usr/lib/spillway/libspillway.so", "containerPath": "/usr/lib/spillway/libspillway.so",
         "options": ["ro", "nosuid", "nodev", "bind"]},
        {"hostPath": "/run/spillway/jobs", "containerPath": "/run/spillway",
         "options": ["ro", "nosuid", "nodev", "noexec", "bind"]}]}}]})"));
  EXPECT_EQ(ClaimDeviceOf("aa-01", "gpu-1"), "k8s.spillway.dev/claim=aa-01-gpu-1");
}

TEST(CdiSpecTest, LetsFrameworksAllocateTensorByTensor) {
  EXPECT_NE(SlotSpec({}).find("PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync"),
            std::string::npos);
}

TEST(CdiSpecTest, FilesAreNamedByClaim) {
  EXPECT_EQ(ClaimInFileName(ClaimSpecFileOf("aa-01")), "aa-01");
  EXPECT_EQ(ClaimInFileName("nvidia.json"), "");
  EXPECT_EQ(ClaimInFileName(kSlotSpecFile), "");
}

TEST_F(FolderTest, TheStateIsReadBackAsItWasSaved) {
  const StateFile file(folder_);
  const DriverState state{
      .claims = {{"aa-01", Record()}}, .pods_to_expect = {"pod-1"}, .pods_to_forget = {"pod-9"}};
  {
    auto access = file.Open(0);
    ASSERT_TRUE(access.ok()) << access.text();
    access->state = state;
    ASSERT_TRUE(access->SaveIfChanged().ok());
    EXPECT_EQ(file.Open(0).text(),
              "the driver is still busy with other claims; kubelet asks again");
  }
  EXPECT_EQ(file.Open(0)->state, state);
}

TEST_F(FolderTest, ADamagedStateIsPutAside) {
  ASSERT_TRUE(
      base::WriteFile(folder_ + "/state.json", R"({"schema": 1, "claims": {"a": {}}})").ok());
  const auto access = StateFile(folder_).Open(0);
  ASSERT_TRUE(access.ok());
  EXPECT_NE(access->damage, "");
  EXPECT_EQ(access->state, DriverState{});
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/state.json.damaged"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/state.json"));
}

}  // namespace
}  // namespace spillway::kubernetes
