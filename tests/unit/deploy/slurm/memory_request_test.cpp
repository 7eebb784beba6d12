#include "deploy/slurm/memory_request.h"

#include <gtest/gtest.h>

namespace spillway::slurm {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(MemoryRequestTest, HasASizeAndOptionalSettings) {
  EXPECT_EQ(ParseMemoryRequest("8G"), (MemoryRequest{.limit_bytes = 8 * kGiB}));
  EXPECT_EQ(ParseMemoryRequest("512MiB,weight=3"),
            (MemoryRequest{.limit_bytes = kGiB / 2, .weight = 3}));
  EXPECT_EQ(
      ParseMemoryRequest("8G,min=2GiB,weight=10000"),
      (MemoryRequest{.limit_bytes = 8 * kGiB, .guaranteed_bytes = 2 * kGiB, .weight = 10000}));
}

TEST(MemoryRequestTest, SaysWhatIsWrong) {
  const auto why = [](const char* text) { return ParseMemoryRequest(text).text(); };
  EXPECT_EQ(why("banana"), "'banana' is no size; sizes are written like 8G or 512MiB");
  EXPECT_EQ(why(""), "'' is no size; sizes are written like 8G or 512MiB");
  EXPECT_EQ(why("0"), "'0' is no size; sizes are written like 8G or 512MiB");
  EXPECT_EQ(why("25%"), "'25%' is no size; sizes are written like 8G or 512MiB");
  EXPECT_EQ(why("8G,max=9G"), "'max=9G' is unknown; there are min=SIZE and weight=N");
  EXPECT_EQ(why("8G,min"), "'' is no size; sizes are written like 8G or 512MiB");
  EXPECT_EQ(why("8G,weight=0"), "'0' is no weight; it is a number from 1 to 10000");
  EXPECT_EQ(why("8G,weight=2x"), "'2x' is no weight; it is a number from 1 to 10000");
  EXPECT_EQ(why("8G,min=9G"), "min= is more than the memory asked for");
}

}  // namespace
}  // namespace spillway::slurm
