#include "agent/node/holdings/allocations.h"

#include <gtest/gtest.h>

#include "tests/unit/agent/units.h"

namespace spillway::agent {
namespace {

using protocol::ErrorCode;
using protocol::OpenListener;

JobIdentity ContainerOf(const std::string& id) {
  return {"container-" + id, "container-" + id, JobSource::kContainer, "", "train", id};
}
JobIdentity PodOf(const std::string& uid) {
  return {"pod-" + uid, "pod-" + uid, JobSource::kKubernetes, "", "train", uid};
}

class AllocationsTest : public testing::Test {
 protected:
  void Open(const std::string& name, const std::string& job = "") {
    EXPECT_TRUE(allocations_.Open({.allocation = name, .job = job}).ok());
  }
  bool Enters(const std::string& name, const JobIdentity& job) {
    return !allocations_.Enter(name, job);
  }
  // `running`: the job of any key; none: nothing runs.
  bool Close(const std::string& name, std::optional<JobId> running = std::nullopt) {
    return allocations_.Close(name, [&](const std::string&) { return running; });
  }
  TermsChange LimitsOf(const std::string& key, JobId job = {}) {
    return allocations_.LimitsOf(key, job);
  }
  std::string WhyNot(const OpenListener& wanted) { return allocations_.Open(wanted).text(); }

  Allocations allocations_;
};

TEST_F(AllocationsTest, TheFirstContainerHasItUntilItIsClosed) {
  Open("a");
  EXPECT_TRUE(Enters("a", ContainerOf("1")));
  EXPECT_TRUE(Enters("a", ContainerOf("1"))) << "its next process";
  EXPECT_FALSE(Enters("a", ContainerOf("2")));
  EXPECT_FALSE(Enters("a", PodOf("5")));

  EXPECT_TRUE(Close("a"));
  EXPECT_FALSE(Close("a"));
  EXPECT_FALSE(Enters("a", ContainerOf("1")));

  Open("a");
  EXPECT_TRUE(Enters("a", ContainerOf("2")));
}

TEST_F(AllocationsTest, AContainerHasOneAllocation) {
  Open("a");
  Open("b");
  EXPECT_TRUE(Enters("a", ContainerOf("1")));
  EXPECT_FALSE(Enters("b", ContainerOf("1"))) << "it would take another's";
  EXPECT_TRUE(Enters("b", ContainerOf("2")));
}

TEST_F(AllocationsTest, APodEntersAllClaimsThatNameIt) {
  Open("claim-1", "pod-5");
  Open("claim-2", "pod-5");
  Open("claim-2", "pod-6");
  EXPECT_TRUE(Enters("claim-1", PodOf("5")));
  EXPECT_TRUE(Enters("claim-2", PodOf("5")));
  EXPECT_TRUE(Enters("claim-2", PodOf("6")));
  EXPECT_FALSE(Enters("claim-1", PodOf("6")));
  EXPECT_FALSE(Enters("claim-1", ContainerOf("1")));
}

// A pod that has joined a claim tries again every second; its manager hears of it meanwhile.
TEST_F(AllocationsTest, APodThatIsNotNamedYetIsPutOffAndReported) {
  Open("claim", "pod-5");
  const std::optional<Refusal> refusal = allocations_.Enter("claim", PodOf("6"));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, ErrorCode::kTooFast);
  EXPECT_TRUE(allocations_.NoteRefused("claim", PodOf("6"), kSecond));
  EXPECT_FALSE(allocations_.NoteRefused("claim", PodOf("6"), 2 * kSecond)) << "no second warning";
  EXPECT_EQ(allocations_.WaitingPods(3 * kSecond), std::vector<std::string>{"6"});
  EXPECT_TRUE(allocations_.WaitingPods(30 * kSecond).empty());

  Open("claim", "pod-6");
  EXPECT_TRUE(Enters("claim", PodOf("6")));
  EXPECT_TRUE(allocations_.WaitingPods(3 * kSecond).empty());
}

// Otherwise a claim that pods share for long would end at kMostJobs.
TEST_F(AllocationsTest, AnEndedPodLeavesItsClaimsWhichStayTheirManagers) {
  Open("claim", "pod-5");
  Open("a");
  EXPECT_TRUE(Enters("a", ContainerOf("1")));
  allocations_.Forget("pod-5");
  allocations_.Forget("container-1");
  EXPECT_TRUE(allocations_.JobsOf("claim").empty());
  EXPECT_FALSE(Enters("claim", ContainerOf("2"))) << "nobody else's";
  EXPECT_FALSE(Enters("claim", PodOf("5")));
  EXPECT_TRUE(Enters("a", ContainerOf("1")));
}

TEST_F(AllocationsTest, AProcessWithoutAGroupOfItsOwnTakesNone) {
  Open("a");
  const JobIdentity local{"local-7", "local-7@12", JobSource::kLocal, "", "train"};
  EXPECT_FALSE(Enters("a", local));
  EXPECT_TRUE(allocations_.JobsOf("a").empty());
}

TEST_F(AllocationsTest, ItsLimitsBindItsJobsAndTheLeastCounts) {
  EXPECT_TRUE(allocations_.Open({.allocation = "a", .job = "pod-5", .limit_bytes = 8}).ok());
  EXPECT_TRUE(
      allocations_.Open({.allocation = "b", .job = "pod-5", .limit_bytes = 6, .host_bytes = 9})
          .ok());
  EXPECT_EQ(LimitsOf("pod-5").limit_bytes, 6);
  EXPECT_EQ(LimitsOf("pod-5").host_limit_bytes, 9);
  EXPECT_EQ(LimitsOf("pod-6"), TermsChange{});
  EXPECT_TRUE(allocations_.Open({.allocation = "b"}).ok()) << "what is not stated stays";
  EXPECT_EQ(LimitsOf("pod-5").limit_bytes, 6);
  Close("b");
  EXPECT_EQ(LimitsOf("pod-5").limit_bytes, 8);
}

TEST_F(AllocationsTest, AClosedOnesLimitsBindItsRunningJob) {
  EXPECT_TRUE(allocations_.Open({.allocation = "a", .job = "pod-5", .limit_bytes = 8}).ok());
  Close("a", JobId{7});
  EXPECT_EQ(LimitsOf("pod-5", JobId{7}).limit_bytes, 8);
  EXPECT_EQ(LimitsOf("pod-5", JobId{8}), TermsChange{}) << "its next job";
}

TEST_F(AllocationsTest, RefusesWhatCannotBe) {
  for (const char* const name : {"", ".", "..", "a/b", "a b", "a_b", ".a"})
    EXPECT_NE(WhyNot({.allocation = name}), "") << name;
  EXPECT_NE(WhyNot({.allocation = "a", .job = "local-7"}), "");
  EXPECT_NE(WhyNot({.allocation = "a", .limit_bytes = 0}), "");
  EXPECT_TRUE(allocations_.Saved().empty());
}

TEST_F(AllocationsTest, ThereAreNoMoreThanItsLimits) {
  for (size_t i = 0; i < Allocations::kMost; ++i) Open("a" + std::to_string(i));
  EXPECT_EQ(WhyNot({.allocation = "b"}), "too many allocations are open: 512");
  for (size_t i = 0; i < Allocations::kMostJobs; ++i) Open("a0", "pod-" + std::to_string(i));
  EXPECT_EQ(WhyNot({.allocation = "a0", .job = "pod-x"}),
            "too many jobs have this allocation: 256");
  for (size_t i = 0; i < Allocations::kMostRefused; ++i)
    EXPECT_TRUE(allocations_.NoteRefused("a0", PodOf("x" + std::to_string(i)), kSecond));
  EXPECT_FALSE(allocations_.NoteRefused("a0", PodOf("y"), kSecond));
}

TEST_F(AllocationsTest, AClaimIsNewsForTheStateFile) {
  Open("a");
  const uint64_t before = allocations_.saved_version();
  EXPECT_TRUE(Enters("a", ContainerOf("1")));
  EXPECT_NE(allocations_.saved_version(), before);
  Allocations next;
  next.Restore(allocations_.Saved());
  EXPECT_TRUE(next.Enter("a", ContainerOf("2")));
}

}  // namespace
}  // namespace spillway::agent
