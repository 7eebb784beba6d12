// Prepare and Unprepare against an agent, an API server and a crash that the test plays.
#include "deploy/kubernetes/claim_preparer.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/clock.h"
#include "base/file.h"

namespace spillway::kubernetes {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
constexpr int64_t kSecondNs = 1'000'000'000, kMinuteNs = 60 * kSecondNs;
constexpr char kPod[] = "1111", kOtherPod[] = "2222";

class ClaimPreparerTest : public testing::Test {
 protected:
  static std::string NewFolder() {
    char name[] = "/tmp/spillway-preparer.XXXXXX";
    std::string folder = mkdtemp(name);
    std::filesystem::create_directory(folder + "/cdi");
    return folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  ClaimPreparer Preparer() {
    return ClaimPreparer(
        {.state_folder = folder_, .cdi_folder = folder_ + "/cdi", .injection = {}},
        {.get_claim = [this](const ClaimName& name, int64_t) { return GetClaim(name); },
         .expect_pod = [this](const std::string& pod, const MemoryTerms& terms,
                              const deploy::Deadlines& until) { return Expect(pod, terms, until); },
         .forget_pod = [this](const std::string& pod, const deploy::Deadlines&) -> base::Status {
           if (is_agent_away_) return base::Error{"the agent is away"};
           expected_.erase(pod);
           return base::Ok();
         },
         .open_listener = [this](const std::string& claim, const std::string& pod,
                                 const deploy::Deadlines&) { return Open(claim, pod); },
         .close_listener = [this](const std::string& claim,
                                  const deploy::Deadlines&) -> base::Status {
           if (is_agent_away_) return base::Error{"the agent is away"};
           listeners_.erase(claim);
           return base::Ok();
         },
         .gpus = [this] { return gpus_; },
         .warn = [this](const std::string& text) { warnings_.push_back(text); }});
  }

  base::Result<Claim> GetClaim(const ClaimName& name) {
    ++gets_;
    if (during_get_) during_get_();
    EXPECT_TRUE(file_.Open(0).ok()) << "others wait while the API server is asked";
    if (is_api_away_) return base::Error{"no answer"};
    const auto claim = api_.find(name.name);
    if (claim == api_.end()) return base::Error{"no such claim", "", "", ENOENT};
    if (claim->second.pods.empty())
      return base::Error{"the claim is reserved for no pod", "", "", kUnusableClaim};
    return claim->second;
  }
  base::Status Expect(const std::string& pod, const MemoryTerms& terms,
                      const deploy::Deadlines& until) {
    told_.push_back({pod, until.connect_ns, until.answer_ns});
    if (!refusal_.empty()) return base::Error{refusal_};
    expected_[pod] = terms;
    return base::Ok();
  }
  base::Result<std::string> Open(const std::string& claim, const std::string& pod) {
    if (is_agent_older_) return base::Error{"an older agent", "", "", deploy::kOlderAgent};
    if (!listener_refusal_.empty()) return base::Error{listener_refusal_};
    listeners_[claim].insert(pod);
    return "/run/spillway/allocations/" + claim + "/agent.sock";
  }
  std::string SpecOf(const ClaimName& name) const {
    return base::ReadFile(folder_ + "/cdi/" + ClaimSpecFileOf(name.uid)).value_or("");
  }
  DriverState State() const { return file_.Open(0)->state; }

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

  struct Told {
    std::string pod;
    int64_t connect_ns, answer_ns;
  };

  std::string folder_ = NewFolder(), refusal_, listener_refusal_;
  const StateFile file_{folder_};
  bool is_agent_away_ = false, is_agent_older_ = false, is_api_away_ = false;
  std::map<std::string, std::set<std::string>> listeners_;  // at the agent: pods by claim
  int gets_ = 0;
  std::function<void()> during_get_;
  std::vector<Told> told_;
  std::vector<std::string> warnings_;
  std::vector<Gpu> gpus_ = {{.uuid = "GPU-1", .memory_bytes = 100 * kGi},
                            {.uuid = "GPU-2", .memory_bytes = 100 * kGi}};
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

TEST_F(ClaimPreparerTest, AClaimHasItsOwnSocketUntilItIsUnprepared) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  EXPECT_EQ(listeners_, (std::map<std::string, std::set<std::string>>{{"a-0", {kPod}}}));
  EXPECT_NE(SpecOf(claim).find("\"/run/spillway/allocations/a-0\""), std::string::npos);
  EXPECT_EQ(SpecOf(claim).find("\"/run/spillway/jobs\""), std::string::npos);
  // The state file tells a driver that starts without the agent.
  std::filesystem::remove(folder_ + "/cdi/" + ClaimSpecFileOf("a-0"));
  listener_refusal_ = "the agent is away";
  EXPECT_TRUE(Preparer().Restore().ok());
  EXPECT_NE(SpecOf(claim).find("\"/run/spillway/allocations/a-0\""), std::string::npos);

  is_agent_away_ = true;
  Preparer().Unprepare({claim});
  EXPECT_EQ(listeners_.size(), 1U);
  is_agent_away_ = false;
  EXPECT_TRUE(Preparer().NotePods({}, 0).ok());
  EXPECT_TRUE(listeners_.empty());
  EXPECT_TRUE(State().listeners_to_close.empty());
}

TEST_F(ClaimPreparerTest, AfterALossOfTheStateItsSocketIsClosedAllTheSame) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  std::filesystem::remove(folder_ + "/state.json");
  EXPECT_TRUE(Preparer().Unprepare({claim}).at("a-0").ok());
  EXPECT_TRUE(listeners_.empty());
}

TEST_F(ClaimPreparerTest, APodThatJoinsAClaimMayUseItsSocket) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({claim});
  api_["a"].pods = {kPod, kOtherPod};

  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());

  EXPECT_EQ(listeners_["a-0"], (std::set<std::string>{kPod, kOtherPod}));
}

TEST_F(ClaimPreparerTest, WithAnOlderAgentAClaimHasTheSocketOfAllJobs) {
  is_agent_older_ = true;
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  ASSERT_TRUE(Preparer().Prepare({claim}).at("a-0").ok());
  EXPECT_NE(SpecOf(claim).find("\"/run/spillway/jobs\""), std::string::npos);
  // The agent is updated.
  is_agent_older_ = false;
  EXPECT_TRUE(Preparer().Restore().ok());
  EXPECT_NE(SpecOf(claim).find("\"/run/spillway/allocations/a-0\""), std::string::npos);
}

TEST_F(ClaimPreparerTest, WithoutItsSocketAClaimIsNotPrepared) {
  listener_refusal_ = "too many allocations are open";
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  EXPECT_EQ(Preparer().Prepare({claim}).at("a-0").text(), "too many allocations are open");
  EXPECT_FALSE(HasSpec(claim));
  EXPECT_EQ(State(), DriverState{});
}

TEST_F(ClaimPreparerTest, RepeatsAPrepareWithoutTheApiServer) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  const auto first = Preparer().Prepare({claim});
  // The node was restarted: nothing but the state file is left, and the agent knows no GPU yet.
  is_api_away_ = true;
  gpus_.clear();
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
  EXPECT_TRUE(Preparer().NotePods({}, 0).ok());
  EXPECT_TRUE(expected_.empty());
}

TEST_F(ClaimPreparerTest, LeavesNothingOfARefusedClaim) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  refusal_ = "the node agent refuses: no room";
  EXPECT_EQ(Preparer().Prepare({claim}).at("a-0").text(), "the node agent refuses: no room");
  EXPECT_FALSE(HasSpec(claim));
  EXPECT_TRUE(State().claims.empty());
}

// Regression: a pod's claims waited for an absent agent one after the other, longer than kubelet
// waits.
TEST_F(ClaimPreparerTest, ACallEndsByOneDeadline) {
  const std::vector<ClaimName> claims = {AddClaim("a", "gpu-1", kGi, {kPod}),
                                         AddClaim("b", "gpu-1", kGi, {kOtherPod}),
                                         AddClaim("c", "gpu-1", kGi, {"3333"})};
  ClaimPreparer preparer = Preparer();
  const int64_t before_ns = base::NowNs(CLOCK_MONOTONIC);
  preparer.Prepare(claims);
  ASSERT_EQ(told_.size(), 3u);
  for (const Told& told : told_) {
    EXPECT_EQ(told.connect_ns, told_[0].connect_ns);
    EXPECT_EQ(told.answer_ns, told_[0].answer_ns);
  }
  EXPECT_LT(told_[0].answer_ns - before_ns, 30'000'000'000);
  EXPECT_GT(told_[0].connect_ns - before_ns, 5'000'000'000);  // an agent that restarts is back

  // A part of a claim comes back to the pod that stays: no end of a pod waits for that.
  AddClaim("d", "gpu-1", kGi, {kPod});
  preparer.Prepare({{"ml", "d", "d-0"}});
  told_.clear();
  preparer.Unprepare({claims[0]});
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_LE(told_[0].connect_ns, base::NowNs(CLOCK_MONOTONIC));
}

TEST_F(ClaimPreparerTest, APodIsToldOfAllItsClaimsAtOnce) {
  const std::vector<ClaimName> claims = {AddClaim("a", "gpu-1", kGi), AddClaim("b", "gpu-1", kGi),
                                         AddClaim("c", "gpu-1", kGi)};
  Preparer().Prepare(claims);
  EXPECT_EQ(told_.size(), 1u);
  told_.clear();
  Preparer().Unprepare(claims);
  EXPECT_TRUE(told_.empty());
  EXPECT_TRUE(expected_.empty());
}

// Regression: the stored record answered, and the pod had another GPU and budget than the scheduler
// counts.
TEST_F(ClaimPreparerTest, AClaimAllocatedAnewReplacesItsRecord) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  AddClaim("a", "gpu-2", 2 * kGi, {kOtherPod});
  const auto prepared = Preparer().Prepare({claim});
  ASSERT_TRUE(prepared.at("a-0").ok()) << prepared.at("a-0").text();
  EXPECT_EQ(prepared.at("a-0")->at(0).device, "gpu-2");
  EXPECT_EQ(Guaranteed(kOtherPod), 2 * kGi);
  EXPECT_EQ(expected_.count(kPod), 0u);
  EXPECT_EQ(State().claims.at("a-0").devices.at(0).gpu_uuid, "GPU-2");
}

TEST_F(ClaimPreparerTest, AClaimThatIsGoneIsNotPreparedFromItsRecord) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  api_.clear();
  EXPECT_EQ(Preparer().Prepare({claim}).at("a-0").text(), "no such claim");
}

TEST_F(ClaimPreparerTest, AFailedRepeatLeavesAPreparedClaimItsFiles) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  Preparer().Prepare({claim});
  refusal_ = "the agent is away";
  EXPECT_FALSE(Preparer().Prepare({claim}).at("a-0").ok());
  EXPECT_TRUE(HasSpec(claim));
  EXPECT_EQ(State().claims.count("a-0"), 1u);
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
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  EXPECT_EQ(Guaranteed(kPod), 4 * kGi);
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
  preparer.Unprepare({claim});
  EXPECT_TRUE(expected_.empty());
}

// Regression: the part of a pod that had ended was nobody's until the claim's last pod ended.
TEST_F(ClaimPreparerTest, AnEndedPodsPartComesBack) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({claim});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  AddClaim("a", "gpu-1", 8 * kGi, {kPod});
  EXPECT_TRUE(preparer.NotePods({kPod}, kMinuteNs).ok());
  EXPECT_EQ(Guaranteed(kPod), 8 * kGi);
  EXPECT_EQ(expected_.count(kOtherPod), 0u);
}

TEST_F(ClaimPreparerTest, LooksAtSharedClaimsNowAndThenOnly) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod}),
                    AddClaim("b", "gpu-1", 8 * kGi, {"3333"})});
  EXPECT_TRUE(preparer.NotePods({kPod}, 0).ok());
  gets_ = 0;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(preparer.NotePods({kPod}, kMinuteNs + i).ok());
  EXPECT_EQ(gets_, 1);
  // All of its pods are there, and the new one may have joined the other claim.
  gets_ = 0;
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 3 * kMinuteNs + i).ok());
  EXPECT_EQ(gets_, 1);
}

// Regression: terms of a pod that joined claims of unequal size could not be stated. It ran without
// a limit, and the others gave parts back for it.
TEST_F(ClaimPreparerTest, APodThatJoinsUnequalClaimsIsBoundByTheLeast) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi), AddClaim("b", "gpu-2", 4 * kGi, {"3333"})});
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  AddClaim("b", "gpu-2", 4 * kGi, {"3333", kOtherPod});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod, "3333"}, 0).ok());
  EXPECT_EQ(expected_[kOtherPod],
            (MemoryTerms{.guaranteed_bytes = 2 * kGi, .limit_bytes = 2 * kGi}));
  EXPECT_EQ(Guaranteed(kPod), 4 * kGi);
  EXPECT_EQ(Guaranteed("3333"), 2 * kGi);
}

// Regression: such a pod kept all of the claim, beside the part of the pod that had joined it.
TEST_F(ClaimPreparerTest, APodWithUnequalPartsGivesThePartAway) {
  const std::vector<ClaimName> claims = {AddClaim("a", "gpu-1", 8 * kGi),
                                         AddClaim("b", "gpu-2", 8 * kGi)};
  ClaimPreparer preparer = Preparer();
  preparer.Prepare(claims);
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  EXPECT_EQ(Guaranteed(kPod) + Guaranteed(kOtherPod), 8 * kGi);
  // It asked for the same on both, so kubelet's repeated call goes well.
  EXPECT_TRUE(preparer.Prepare(claims).at("b-0").ok());
}

// Regression: the pod was known by its own claim, so nobody looked whether it had joined another.
TEST_F(ClaimPreparerTest, APodThatIsKnownByAnotherClaimJoinsToo) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi)});
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  preparer.Prepare({AddClaim("b", "gpu-2", 6 * kGi, {kOtherPod})});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  EXPECT_EQ(Guaranteed(kPod), 4 * kGi);
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
  EXPECT_EQ(State().claims.at("a-0").pods, (std::vector<std::string>{kPod, kOtherPod}));
}

// Regression: its part went to the others while it ran.
TEST_F(ClaimPreparerTest, APodDeletedByForceKeepsItsPartWhileItRuns) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi)});
  AddClaim("a", "gpu-1", 8 * kGi, {kOtherPod});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  EXPECT_EQ(Guaranteed(kPod), 4 * kGi);
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
  EXPECT_TRUE(preparer.NotePods({kOtherPod}, kMinuteNs).ok());
  EXPECT_EQ(Guaranteed(kOtherPod), 8 * kGi);
  EXPECT_EQ(expected_.count(kPod), 0u);
}

// Regression: the pods of a new allocation were taken as users of the old one.
TEST_F(ClaimPreparerTest, ANewAllocationIsKubeletsToPrepare) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi)});
  AddClaim("a", "gpu-2", 8 * kGi, {kPod, kOtherPod});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  EXPECT_EQ(Guaranteed(kPod), 8 * kGi);
  EXPECT_EQ(expected_.count(kOtherPod), 0u);
}

// Regression: what the agent refuses for good was stated every second.
TEST_F(ClaimPreparerTest, ARefusalIsTriedAgainAtGrowingIntervals) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi)});
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  refusal_ = "no room";
  told_.clear();
  for (int64_t second = 0; second < 120; ++second)
    EXPECT_EQ(preparer.NotePods({kPod, kOtherPod}, second * kSecondNs).text(), "no room");
  EXPECT_LT(told_.size(), 20u);  // of two pods
  // Nor does the driver restore everything again and again.
  EXPECT_TRUE(preparer.Restore().ok());
  EXPECT_EQ(preparer.NotePods({kPod, kOtherPod}, 121 * kSecondNs).text(), "no room");
  refusal_.clear();
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 160 * kSecondNs).ok());
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
}

// Regression: one such claim ended the division of all shared claims on the node.
TEST_F(ClaimPreparerTest, AnUnusableClaimLeavesTheOthersAlone) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi), AddClaim("b", "gpu-1", 4 * kGi, {"3333"})});
  AddClaim("a", "gpu-1", 8 * kGi, {});  // its reservation was removed by force
  AddClaim("b", "gpu-1", 4 * kGi, {"3333", kOtherPod});
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  EXPECT_EQ(Guaranteed(kOtherPod), 2 * kGi);
  EXPECT_EQ(Guaranteed(kPod), 8 * kGi);
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod, "4444"}, 0).ok());
  EXPECT_EQ(warnings_, std::vector<std::string>{"claim ml/a keeps the pods that it had: the claim "
                                                "is reserved for no pod"});
}

TEST_F(ClaimPreparerTest, LooksAgainIfTheApiServerWasAway) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi)});
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  is_api_away_ = true;
  EXPECT_EQ(preparer.NotePods({kPod, kOtherPod}, 0).text(), "no answer");
  is_api_away_ = false;
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 1).ok());
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
}

// Regression: a pod that the first look missed waited for ever.
TEST_F(ClaimPreparerTest, APodThatWaitsIsLookedForAgain) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi)});
  gets_ = 0;
  for (int second = 0; second < 85; ++second)
    EXPECT_TRUE(preparer.NotePods({kPod}, second * kSecondNs, {kOtherPod}).ok());
  EXPECT_EQ(gets_, 85 / 5);
  EXPECT_EQ(warnings_, std::vector<std::string>{"pod 2222 waits at the socket of a claim that is "
                                                "not reserved for it"});
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  EXPECT_TRUE(preparer.NotePods({kPod}, 85 * kSecondNs, {kOtherPod}).ok());
  EXPECT_EQ(listeners_["a-0"].count(kOtherPod), 1U);
}

// Regression: what could not be saved, or had changed meanwhile, was not looked for again.
TEST_F(ClaimPreparerTest, LooksAgainIfWhatItFoundWasNotTaken) {
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({AddClaim("a", "gpu-1", 8 * kGi)});
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  during_get_ = [&] {
    auto access = file_.Open(0);
    access->state.claims.at("a-0").job_socket = "/elsewhere/agent.sock";
    EXPECT_TRUE(access->SaveIfChanged().ok());
  };
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 0).ok());
  during_get_ = nullptr;
  EXPECT_TRUE(preparer.NotePods({kPod, kOtherPod}, 1).ok());
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
}

// Regression: a pod kept former terms for good if the agent was away for a moment.
TEST_F(ClaimPreparerTest, TermsThatTheAgentDidNotHearAreStatedAgain) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  ClaimPreparer preparer = Preparer();
  preparer.Prepare({claim});
  AddClaim("a", "gpu-1", 8 * kGi, {kPod, kOtherPod});
  refusal_ = "the agent is away";
  EXPECT_EQ(preparer.NotePods({kPod, kOtherPod}, 0).text(), "the agent is away");
  refusal_.clear();
  // The next driver knows it, too.
  EXPECT_TRUE(Preparer().NotePods({kPod, kOtherPod}, 1).ok());
  EXPECT_EQ(Guaranteed(kPod), 4 * kGi);
  EXPECT_EQ(Guaranteed(kOtherPod), 4 * kGi);
  EXPECT_TRUE(State().pods_to_expect.empty());
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

// Regression: the restart after the one that found the damage removed files of running pods.
TEST_F(ClaimPreparerTest, KeepsFilesOfClaimsThatADamagedStateMayHaveHad) {
  const ClaimName claim = AddClaim("a", "gpu-1", 8 * kGi);
  const std::string state = folder_ + "/state.json";
  Preparer().Prepare({claim});
  for (const char* const aside : {".damaged", ".damaged.1"}) {
    ASSERT_TRUE(base::WriteFile(state, "{").ok());
    for (int starts = 0; starts < 3; ++starts) {
      EXPECT_TRUE(Preparer().Restore().ok());
      EXPECT_TRUE(HasSpec(claim));
      Preparer().Prepare({AddClaim("b", "gpu-1", kGi)});  // a new state is written
    }
    EXPECT_TRUE(std::filesystem::exists(state + aside));
  }
  // Kubelet unprepares them, known or not. Without the damaged files, the state is whole again.
  Preparer().Unprepare({claim});
  EXPECT_FALSE(HasSpec(claim));
  for (const char* const aside : {".damaged", ".damaged.1"}) std::filesystem::remove(state + aside);
  ASSERT_TRUE(base::WriteFile(folder_ + "/cdi/" + ClaimSpecFileOf("dead-1"), "{}").ok());
  EXPECT_TRUE(Preparer().Restore().ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/cdi/" + ClaimSpecFileOf("dead-1")));
}

// Regression: the state of a driver that kept no `counted` was put aside as damaged.
TEST_F(ClaimPreparerTest, ReadsTheStateOfAnEarlierDriver) {
  const auto device = [](const std::string& name, const std::string& limit) {
    return R"([{"request": "gpu", "pool": "n1", "device": "gpu-1", "share": "", "gpu": "GPU-1",
               "terms": {"guaranteed": 8589934592, "limit": )" +
           limit + R"(}}], "namespace": "ml", "name": ")" + name + R"(", "pods": ["1111"]})";
  };
  ASSERT_TRUE(base::WriteFile(folder_ + "/state.json",
                              R"({"schema": 1, "pods_to_forget": ["4444"], "claims": {
                                  "a-0": {"devices": )" +
                                  device("a", "8589934592") + R"(, "b-0": {"devices": )" +
                                  device("b", "42949672960") + R"(, "c-0": {"devices": )" +
                                  device("c", "42949672960") + "}}")
                  .ok());
  expected_["4444"] = {};
  EXPECT_TRUE(Preparer().Restore().ok());
  EXPECT_TRUE(warnings_.empty());
  EXPECT_EQ(expected_.count("4444"), 0u);
  // One claim of 8, and two of a class with the limit 40, which do not add up.
  EXPECT_EQ(expected_[kPod], (MemoryTerms{.guaranteed_bytes = 24 * kGi, .limit_bytes = 40 * kGi}));
}

TEST_F(ClaimPreparerTest, AMissingStateMeansNoFileIsAStray) {
  ASSERT_TRUE(base::WriteFile(folder_ + "/cdi/" + ClaimSpecFileOf("dead-1"), "{}").ok());
  EXPECT_TRUE(Preparer().Restore().ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/cdi/" + ClaimSpecFileOf("dead-1")));
}

}  // namespace
}  // namespace spillway::kubernetes
