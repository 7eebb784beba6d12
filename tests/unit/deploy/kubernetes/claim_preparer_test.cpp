// Prepare and Unprepare against an agent, an API server and a crash that the test plays.
#include "deploy/kubernetes/claim_preparer.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "deploy/kubernetes/pod_terms.h"

namespace spillway::kubernetes {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
constexpr char kPod[] = "1111", kOtherPod[] = "2222";

class ClaimPreparerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/spillway-preparer.XXXXXX";
    folder_ = mkdtemp(name);
    std::filesystem::create_directory(folder_ + "/cdi");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ClaimPreparer Preparer() {
    return ClaimPreparer(
        {.state_folder = folder_, .cdi_folder = folder_ + "/cdi", .injection = {}},
        {.get_claim = [this](const ClaimName& name) -> base::Result<Claim> {
           const auto claim = api_.find(name.name);
           if (claim == api_.end()) return base::Error{"no such claim", "", "", ENOENT};
           return claim->second;
         },
         .expect_pod = [this](const std::string& pod, const MemoryTerms& terms) -> base::Status {
           if (!refusal_.empty()) return base::Error{refusal_};
           expected_[pod] = terms;
           return base::Ok();
         },
         .forget_pod = [this](const std::string& pod) -> base::Status {
           if (is_agent_away_) return base::Error{"the agent is away"};
           expected_.erase(pod);
           return base::Ok();
         },
         .gpus =
             [] {
               return std::vector<Gpu>{{.uuid = "GPU-1", .memory_bytes = 100 * kGi},
                                       {.uuid = "GPU-2", .memory_bytes = 100 * kGi}};
             },
         .warn = [](const std::string&) {}});
  }

  // As the API server knows it. `gpu`: "gpu-1" or "gpu-2".
  ClaimName AddClaim(const std::string& name, const std::string& gpu, int64_t bytes,
                     std::vector<std::string> pods = {kPod}) {
    ClaimName claim{"ml", name, name + "-0"};
    AllocatedDevice device{
        .request = "gpu", .pool = "n1", .device = gpu, .share_id = "", .counted_bytes = bytes};
    api_[name] = Claim{claim, {device}, std::move(pods)};
    return claim;
  }
  bool HasSpec(const ClaimName& name) const {
    return std::filesystem::exists(folder_ + "/cdi/" + ClaimSpecFileOf(name.uid));
  }
  int64_t Guaranteed(const std::string& pod) { return expected_[pod].guaranteed_bytes; }

  std::string folder_, refusal_;
  bool is_agent_away_ = false;
  std::map<std::string, Claim> api_;             // by name
  std::map<std::string, MemoryTerms> expected_;  // by the agent, by pod
};

TEST_F(ClaimPreparerTest, BindsThePodsBudgetAndNamesDevices) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  const auto prepared = Preparer().Prepare({claim});
  ASSERT_TRUE(prepared.at("a-0").ok()) << prepared.at("a-0").text();
  EXPECT_EQ(
      *prepared.at("a-0"),
      (std::vector<GivenDevice>{{"gpu",
                                 "n1",
                                 "gpu-1",
                                 "",
                                 {"k8s.spillway.dev/claim=a-0-gpu-1", "nvidia.com/gpu=GPU-1"}}}));
  EXPECT_EQ(expected_[kPod], (MemoryTerms{.guaranteed_bytes = 8 * kGi, .limit_bytes = 8 * kGi}));
  EXPECT_TRUE(HasSpec(claim));
}

TEST_F(ClaimPreparerTest, RepeatsAPrepareWithoutTheApiServer) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  const auto first = Preparer().Prepare({claim});
  // The node was restarted: nothing but the state file is left.
  api_.clear();
  expected_.clear();
  std::filesystem::remove(folder_ + "/cdi/" + ClaimSpecFileOf("a-0"));
  const auto again = Preparer().Prepare({claim});
  ASSERT_TRUE(again.at("a-0").ok()) << again.at("a-0").text();
  EXPECT_EQ(*again.at("a-0"), *first.at("a-0"));
  EXPECT_EQ(Guaranteed(kPod), 8 * kGi);
  EXPECT_TRUE(HasSpec(claim));
}

TEST_F(ClaimPreparerTest, UnpreparesAClaimThatIsGone) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  api_.clear();
  for (int times = 0; times < 2; ++times) {
    EXPECT_TRUE(Preparer().Unprepare({claim}).at("a-0").ok());
    EXPECT_TRUE(expected_.empty());
    EXPECT_FALSE(HasSpec(claim));
  }
}

TEST_F(ClaimPreparerTest, ForgetsAPodLaterIfTheAgentIsAway) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  is_agent_away_ = true;
  EXPECT_TRUE(Preparer().Unprepare({claim}).at("a-0").ok());
  EXPECT_EQ(expected_.count(kPod), 1u);
  is_agent_away_ = false;
  EXPECT_TRUE(Preparer().NotePods({}).ok());
  EXPECT_TRUE(expected_.empty());
}

TEST_F(ClaimPreparerTest, LeavesNothingOfARefusedClaim) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  refusal_ = "the node agent refuses: no room";
  EXPECT_EQ(Preparer().Prepare({claim}).at("a-0").text(), "the node agent refuses: no room");
  EXPECT_FALSE(HasSpec(claim));
  EXPECT_TRUE(StateFile(folder_).Open()->state.claims.empty());
}

TEST_F(ClaimPreparerTest, RefusesAnotherClaimOfTheSameName) {
  ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  claim.uid = "b-1";
  EXPECT_EQ(Preparer().Prepare({claim}).at("b-1").text(),
            "the claim of this name is another one by now, a-0");
}

TEST_F(ClaimPreparerTest, RefusesNamesThatLeadOutOfItsFolders) {
  for (const ClaimName& name : {ClaimName{"ml", "a", "../a"}, ClaimName{"m/l", "a", "a-0"}}) {
    EXPECT_FALSE(Preparer().Prepare({name}).at(name.uid).ok());
    EXPECT_FALSE(Preparer().Unprepare({name}).at(name.uid).ok());
  }
}

TEST_F(ClaimPreparerTest, AddsUpAPodsClaimsOnAGpu) {
  const ClaimName first = AddClaim("a", "gpu-1", 8 * kGi), second = AddClaim("b", "gpu-1", 2 * kGi);
  Preparer().Prepare({first, second});
  EXPECT_EQ(Guaranteed(kPod), 10 * kGi);
  Preparer().Unprepare({first});
  EXPECT_EQ(Guaranteed(kPod), 2 * kGi);
}

TEST_F(ClaimPreparerTest, RefusesUnequalBudgetsOnAPodsGpus) {
  const ClaimName first = AddClaim("a", "gpu-1", 8 * kGi), second = AddClaim("b", "gpu-2", 2 * kGi);
  const auto prepared = Preparer().Prepare({first, second});
  EXPECT_EQ(prepared.at("a-0").text(),
            "the pod would have 8Gi to 8Gi on GPU-1 and 2Gi to 2Gi on GPU-2: the agent gives a pod "
            "one budget for each of its GPUs; ask for the same memory on each");
}

TEST_F(ClaimPreparerTest, TakesThePodsClaimsTogether) {
  const std::vector<ClaimName> claims = {AddClaim("a", "gpu-1", 4 * kGi),
                                         AddClaim("b", "gpu-2", 8 * kGi),
                                         AddClaim("c", "gpu-1", 4 * kGi)};
  const auto prepared = Preparer().Prepare(claims);
  for (const auto& [uid, result] : prepared) EXPECT_TRUE(result.ok()) << result.text();
  EXPECT_EQ(Guaranteed(kPod), 8 * kGi);
}

TEST_F(ClaimPreparerTest, PodsOfOneClaimShareIt) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({claim});
  // The scheduler gives the claim to a second pod; kubelet says nothing, but the agent sees it.
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}).ok());
  EXPECT_EQ(Guaranteed(kPod), 4 * kGi);
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
  preparer.Unprepare({claim});
  EXPECT_TRUE(expected_.empty());
}

TEST_F(ClaimPreparerTest, RestoresEverythingAfterAStart) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  expected_.clear();
  std::filesystem::remove(folder_ + "/cdi/" + ClaimSpecFileOf("a-0"));
  ASSERT_TRUE(base::WriteFile(folder_ + "/cdi/" + ClaimSpecFileOf("dead-1"), "{}").ok());
  EXPECT_TRUE(Preparer().Restore().ok());
  EXPECT_EQ(Guaranteed(kPod), 8 * kGi);
  EXPECT_TRUE(HasSpec(claim));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/cdi/" + ClaimSpecFileOf("dead-1")));
}

TEST(PodTermsTest, SpeaksTheAgentsLanguage) {
  const auto wanted = Expecting("12-34", {.guaranteed_bytes = 3, .limit_bytes = 5, .priority = 0});
  EXPECT_EQ(wanted.job.view(), "pod-12-34");
  EXPECT_EQ(wanted.guaranteed_bytes, 3);
  EXPECT_EQ(wanted.limit_bytes, 5);
  EXPECT_EQ(wanted.weight, -1);
  EXPECT_EQ(wanted.priority_plus_one, 1);
}

}  // namespace
}  // namespace spillway::kubernetes
