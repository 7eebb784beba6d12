#include "agent/http/routes.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

TEST(RoutesTest, NamesThePagesOfAJob) {
  EXPECT_EQ(RouteOf("/api/v1/jobs/slurm-1"), (Route{Page::kJob, "slurm-1"}));
  EXPECT_EQ(RouteOf("/api/v1/jobs/slurm-1/history"), (Route{Page::kJobHistory, "slurm-1"}));
  EXPECT_EQ(RouteOf("/api/v1/jobs/slurm-1/plan"), (Route{Page::kJobPlan, "slurm-1"}));
  EXPECT_EQ(RouteOf("/api/v1/jobs/a%2Fb%20c"), (Route{Page::kJob, "a/b c"}));
}

TEST(RoutesTest, RefusesWhatIsNoName) {
  for (const char* path :
       {"/api/v1/jobs/", "/api/v1/jobs//history", "/api/v1/jobs/a/b/c", "/api/v1/jobs/a%2",
        "/api/v1/jobs/a%", "/api/v1/jobs/%-1", "/api/v1/jobs/%zz"})
    EXPECT_EQ(RouteOf(path), Route{}) << path;
}

TEST(RoutesTest, ShowsEverybodyOnlyWhatTellsNothingOfJobs) {
  for (const char* path : {"/", "/live.js", "/healthz", "/readyz", "/no/such/page"})
    EXPECT_TRUE(IsPublic(RouteOf(path).page)) << path;
  for (const char* path : {"/metrics", "/api/v1/status", "/api/v1/history", "/api/v1/events",
                           "/api/v1/jobs/a", "/api/v1/jobs/a/history", "/api/v1/jobs/a/plan"})
    EXPECT_FALSE(IsPublic(RouteOf(path).page)) << path;
}

}  // namespace
}  // namespace spillway::agent
