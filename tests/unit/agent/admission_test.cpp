#include "agent/arbiter/admission.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

constexpr int64_t kPatience = 600;

Terms Wanting(int64_t guaranteed, int32_t priority = 0, int64_t floor = 1) {
  Terms terms;
  terms.memory = {floor, guaranteed, 100};
  terms.priority = priority;
  return terms;
}

AdmissionPlan Plan(std::vector<Terms> tenants, std::vector<Applicant> applicants, int64_t now = 0,
                   bool draining = false) {
  return PlanAdmissions({100, 1000, tenants, tenants, kPatience, draining, nullptr, {}, {}},
                        applicants, now);
}

std::vector<uint64_t> Numbers(const std::vector<Admitted>& admitted) {
  std::vector<uint64_t> numbers;
  for (const Admitted& one : admitted) numbers.push_back(one.number);
  return numbers;
}
std::vector<uint64_t> Numbers(const std::vector<Waiting>& queue) {
  std::vector<uint64_t> numbers;
  for (const Waiting& one : queue) numbers.push_back(one.number);
  return numbers;
}
using List = std::vector<uint64_t>;

TEST(AdmissionTest, AdmitsWhileGuaranteesFit) {
  const AdmissionPlan plan = Plan({Wanting(50)}, {{1, 0, Wanting(30)}, {2, 0, Wanting(30)}});

  EXPECT_EQ(Numbers(plan.admitted), (List{1}));
  EXPECT_EQ(Numbers(plan.queue), (List{2}));
}

TEST(AdmissionTest, AdmitsByPriorityThenByArrival) {
  const AdmissionPlan plan =
      Plan({}, {{1, 0, Wanting(60)}, {2, 0, Wanting(60, 5)}, {3, 0, Wanting(60, 5)}});

  EXPECT_EQ(Numbers(plan.admitted), (List{2}));
  EXPECT_EQ(Numbers(plan.queue), (List{3, 1}));
}

TEST(AdmissionTest, HigherPriorityPreemptsGuaranteesButNotFloors) {
  EXPECT_EQ(Numbers(Plan({Wanting(90, 0, 10)}, {{1, 0, Wanting(90, 1)}}).admitted), (List{1}));
  EXPECT_EQ(Numbers(Plan({Wanting(90, 0, 20)}, {{1, 0, Wanting(90, 1)}}).admitted), (List{}));
}

TEST(AdmissionTest, JobThatFitsPassesOneThatDoesNot) {
  const AdmissionPlan plan = Plan({Wanting(50)}, {{1, 0, Wanting(80)}, {2, 0, Wanting(20)}});

  EXPECT_EQ(Numbers(plan.admitted), (List{2}));
}

TEST(AdmissionTest, NoJobPassesOneThatHasWaitedLong) {
  const AdmissionPlan plan = Plan(
      {Wanting(50)}, {{1, 0, Wanting(80)}, {2, 599, Wanting(20)}, {3, 599, Wanting(20, 9)}}, 600);

  EXPECT_EQ(Numbers(plan.admitted), (List{}));
  EXPECT_EQ(Numbers(plan.queue), (List{1, 3, 2}));
}

TEST(AdmissionTest, JobThatHoldsAnotherDeviceTakesTheGuaranteeThatIsLeft) {
  const AdmissionPlan plan = Plan({Wanting(70)}, {{1, 0, Wanting(80), true}});

  ASSERT_EQ(Numbers(plan.admitted), (List{1}));
  EXPECT_EQ(plan.admitted[0].terms.memory.guaranteed, 30);
}

TEST(AdmissionTest, HostMemoryAndLinkNeverDelayAdmission) {
  Terms greedy = Wanting(10);
  greedy.host = {100, 2000, 3000};
  greedy.link = {0, 600, 1000};

  const AdmissionPlan plan = Plan({greedy}, {{1, 0, greedy}});

  ASSERT_EQ(Numbers(plan.admitted), (List{1}));
  EXPECT_EQ(plan.admitted[0].terms.host.guaranteed, 0);
  EXPECT_EQ(plan.admitted[0].terms.link.guaranteed, 400);
}

TEST(AdmissionTest, DrainedNodeAdmitsNoJob) {
  const AdmissionPlan plan = Plan({}, {{1, 0, Wanting(10)}}, 0, true);

  EXPECT_TRUE(plan.admitted.empty());
  EXPECT_EQ(Numbers(plan.queue), (List{1}));
}

TEST(AdmissionTest, ImpossibleTermsAreReported) {
  EXPECT_EQ(CheckAdmissible(Wanting(50), 100).text(), "");
  EXPECT_EQ(CheckAdmissible(Wanting(101), 100).text(),
            "its guarantee of 101 B is more than the device has, 100 B: lower `guaranteed`");
  Terms terms = Wanting(50);
  terms.memory.limit = 40;
  EXPECT_EQ(CheckAdmissible(terms, 100).text(), "its limit of 40 B is below its guarantee of 50 B");
  Terms floor = Wanting(0);
  floor.memory.floor = 512;
  EXPECT_EQ(CheckAdmissible(floor, 100).text(),
            "its floor of 512 B is more than the device has, 100 B: lower `floor` in [defaults] or "
            "a rule");
}

constexpr OwnerId kOneUser{1}, kOtherUser{2};

Terms OfOwner(OwnerId owner, int64_t guaranteed, int64_t floor = 1) {
  Terms terms = Wanting(guaranteed, 0, floor);
  terms.owner = owner;
  return terms;
}

AdmissionPlan PlanAmong(const Owners& owners, std::vector<Terms> tenants,
                        std::vector<Applicant> applicants, std::map<OwnerId, int64_t> jobs = {},
                        std::map<OwnerId, int64_t> parts = {}, int64_t now = 0) {
  return PlanAdmissions({100, 1000, tenants, tenants, kPatience, false, &owners, jobs, parts},
                        applicants, now);
}

TEST(AdmissionOfOwnersTest, UserNeverExceedsItsLimitOfRunningJobs) {
  const AdmissionPlan plan = PlanAmong(
      {{kOneUser, {.jobs = 2}}, {kOtherUser, {}}}, {OfOwner(kOneUser, 1)},
      {{1, 0, OfOwner(kOneUser, 1)}, {2, 0, OfOwner(kOneUser, 1)}, {3, 0, OfOwner(kOtherUser, 1)}},
      {{kOneUser, 1}});

  EXPECT_EQ(Numbers(plan.admitted), (List{1, 3}));
  EXPECT_EQ(plan.queue, (std::vector<Waiting>{{2, WaitsFor::kOwnersJobs}}));
}

TEST(AdmissionOfOwnersTest, JobThatWaitsForItsOwnUserNeverDelaysOthers) {
  const AdmissionPlan plan = PlanAmong(
      {{kOneUser, {.limit_bytes = 50}}, {kOtherUser, {}}}, {OfOwner(kOneUser, 40)},
      {{1, 0, OfOwner(kOneUser, 20)}, {2, 599, OfOwner(kOtherUser, 20)}}, {}, {}, kPatience);

  EXPECT_EQ(Numbers(plan.admitted), (List{2}));
  EXPECT_EQ(plan.queue, (std::vector<Waiting>{{1, WaitsFor::kOwnersLimit}}));
}

TEST(AdmissionOfOwnersTest, UsersGuaranteeIsKeptFreeForItsJobs) {
  const Owners owners = {{kOneUser, {.guaranteed_bytes = 60}}, {kOtherUser, {}}};
  const std::vector<Applicant> both = {{1, 0, OfOwner(kOtherUser, 50)},
                                       {2, 0, OfOwner(kOneUser, 50)}};

  EXPECT_EQ(Numbers(PlanAmong(owners, {}, both).admitted), (List{2}));
  EXPECT_EQ(
      Numbers(
          PlanAmong(owners, {OfOwner(kOneUser, 60)}, {{1, 0, OfOwner(kOtherUser, 40)}}).admitted),
      (List{1}));
}

TEST(AdmissionOfOwnersTest, FloorsOfOneUserStayWithinItsShareUntilTheyHaveWaitedLong) {
  const Owners owners = {{kOneUser, {}}};
  const std::vector<Terms> running = {OfOwner(kOneUser, 0, 20)};
  const std::vector<Applicant> more = {{1, 0, OfOwner(kOneUser, 0, 20)},
                                       {2, 0, OfOwner(kOneUser, 0, 20)}};

  EXPECT_EQ(Numbers(PlanAmong(owners, running, more, {}, {{kOneUser, 50}}).admitted), (List{1}));
  EXPECT_EQ(Numbers(PlanAmong(owners, running, more, {}, {{kOneUser, 50}}, kPatience).admitted),
            (List{1, 2}));
}

}  // namespace
}  // namespace spillway::agent
