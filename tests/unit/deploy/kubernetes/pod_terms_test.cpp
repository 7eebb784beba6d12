#include "deploy/kubernetes/pod_terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace spillway::kubernetes {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;
constexpr char kPod[] = "1111", kOtherPod[] = "2222";

class SeveralClaimsTest : public testing::Test {
 protected:
  struct Asked {
    int64_t counted_gi, limit_gi;
    std::optional<int64_t> class_limit_gi = {};
  };
  // "guaranteed to limit" of a pod with these claims on one GPU, in Gi.
  static std::string Terms(const std::vector<Asked>& claims,
                           const std::vector<std::string>& pods = {kPod}) {
    DriverState state;
    for (const Asked& asked : claims) {
      const std::string uid = "c" + std::to_string(state.claims.size());
      PreparedDevice device{
          .request = "gpu",
          .pool = "n1",
          .device = "gpu-1",
          .share_id = "",
          .gpu_uuid = "GPU-1",
          .terms = {.guaranteed_bytes = std::min(asked.counted_gi, asked.limit_gi) * kGi,
                    .limit_bytes = asked.limit_gi * kGi},
          .counted_bytes = asked.counted_gi * kGi};
      if (asked.class_limit_gi) device.class_limit_bytes = *asked.class_limit_gi * kGi;
      state.Take({.name = {"ml", uid, uid}, .devices = {device}, .pods = pods});
    }
    const base::Result<MemoryTerms> terms = TermsOfPod(state, kPod);
    if (!terms) return terms.text();
    return std::to_string(terms->guaranteed_bytes / kGi) + " to " +
           std::to_string(terms->limit_bytes / kGi);
  }
};

TEST_F(SeveralClaimsTest, CountedMemoryAddsUp) {
  EXPECT_EQ(Terms({{8, 8}, {2, 2}}), "10 to 10");
  EXPECT_EQ(Terms({{8, 3}, {2, 2}}), "5 to 5");  // the first claim lowers its limit
}

// Regression: two claims of a class with a limit of 40 gave a pod 80.
TEST_F(SeveralClaimsTest, LimitsOfClassesDoNotAddUp) {
  EXPECT_EQ(Terms({{8, 40, 40}, {8, 40, 40}}), "16 to 40");
  EXPECT_EQ(Terms({{8, 40, 40}, {8, 20, 20}}), "16 to 40");
  // What claims lower adds up, as far as the class lets it.
  EXPECT_EQ(Terms({{8, 10, 40}, {8, 10, 40}}), "16 to 20");
}

TEST_F(SeveralClaimsTest, ClaimsOfALimitedClassHaveNoMoreThanItsLimitTogether) {
  EXPECT_EQ(Terms({{8, 10, 10}, {8, 10, 10}}), "10 to 10");
  EXPECT_EQ(Terms({{8, 4, 4}, {8, 4, 4}}), "4 to 4");
}

TEST_F(SeveralClaimsTest, AClaimOfAClassWithoutLimitHasItsMemoryBeside) {
  EXPECT_EQ(Terms({{4, 40, 40}, {8, 8}}), "12 to 40");
  EXPECT_EQ(Terms({{8, 10, 10}, {8, 8}}), "16 to 16");
  EXPECT_EQ(Terms({{8, 10, 10}, {8, 10, 10}, {8, 8}}), "18 to 18");
}

TEST_F(SeveralClaimsTest, PodsOfSharedClaimsHaveParts) {
  EXPECT_EQ(Terms({{8, 40, 40}, {8, 40, 40}}, {kOtherPod, kPod}), "8 to 40");
  EXPECT_EQ(Terms({{8, 40, 40}}, {kOtherPod, kPod}), "4 to 20");
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
