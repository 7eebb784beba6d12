// The fast path that covers all of a job's memory.
#include "interposer/execute/state/all_memory.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kSomeStream = 7;

struct AllMemoryTest : testing::Test {
  JobLocks locks;
  Contents outside;
  AllMemory memory{&outside};
  bool IsOpen() { return memory.range()->fast_path.IsOpenFor(kSomeStream); }
};

TEST_F(AllMemoryTest, IsOpenAtFirst) { EXPECT_TRUE(IsOpen()); }

TEST_F(AllMemoryTest, IsClosedWhileTheDeviceMustStayIdle) {
  const StateLock lock(locks);
  memory.SetDeviceIdle(true);
  EXPECT_TRUE(memory.device_is_idle());
  EXPECT_FALSE(IsOpen());

  memory.SetDeviceIdle(false);
  EXPECT_TRUE(IsOpen());
}

TEST_F(AllMemoryTest, IsClosedWhileForeignMemoryHoldsAddresses) {
  const StateLock lock(locks);
  outside.Put({0x1000, 0x2000});
  memory.Update();
  EXPECT_FALSE(IsOpen());

  memory.SetDeviceIdle(false);
  EXPECT_FALSE(IsOpen());

  outside.Forget(0x1000, 8);
  memory.Update();
  EXPECT_TRUE(IsOpen());
}

TEST_F(AllMemoryTest, IsInUseBetweenEnterAndLeave) {
  Range* const range = memory.range();
  EXPECT_FALSE(memory.IsNamed());

  ASSERT_TRUE(calls::Enter(&range, 1, kSomeStream));
  EXPECT_TRUE(memory.IsNamed());

  calls::Leave(1);
  EXPECT_FALSE(memory.IsNamed());
}

}  // namespace
}  // namespace spillway::interposer
