#include "agent/node/table/resume_period.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

constexpr int64_t kMs = 1'000'000;

TEST(ResumePeriodTest, EndsOnce) {
  ResumePeriod period(300 * kMs, 0);

  EXPECT_FALSE(period.Pass(200 * kMs));
  EXPECT_TRUE(period.is_on());
  EXPECT_TRUE(period.Pass(300 * kMs));
  EXPECT_FALSE(period.is_on());
  EXPECT_FALSE(period.Pass(400 * kMs));
  EXPECT_EQ(period.NextWake(), INT64_MAX);
}

TEST(ResumePeriodTest, TimeThatServesNobodyDoesNotCount) {
  ResumePeriod period(1000 * kMs, 0);

  EXPECT_FALSE(period.Pass(60'000 * kMs)) << "a stopped agent: 250 ms count";
  EXPECT_FALSE(period.Pass(0)) << "a clock that goes backwards: nothing counts";
  EXPECT_FALSE(period.Pass(250 * kMs));
  EXPECT_FALSE(period.Pass(500 * kMs));
  EXPECT_TRUE(period.Pass(750 * kMs));
}

TEST(ResumePeriodTest, WakesBeforeTimeIsLost) {
  ResumePeriod period(300 * kMs, 0);

  EXPECT_EQ(period.NextWake(), 250 * kMs);
  period.Pass(250 * kMs);
  EXPECT_EQ(period.NextWake(), 300 * kMs);
}

TEST(ResumePeriodTest, OfNoLengthIsNeverOn) {
  ResumePeriod period(0, 0);

  EXPECT_FALSE(period.is_on());
  EXPECT_FALSE(period.Pass(1));
}

}  // namespace
}  // namespace spillway::agent
