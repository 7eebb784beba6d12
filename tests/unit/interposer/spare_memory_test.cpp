// The unused memory that a job without a budget keeps, in mebibytes.
#include "interposer/execute/residency/spare_memory.h"

#include <gtest/gtest.h>

namespace spillway::interposer {
namespace {

constexpr std::size_t kSpareMiB = std::size_t{1} << 20;
constexpr std::size_t kLeast = SpareMemory::kLeastBytes;

TEST(SpareMemoryTest, KeepsLittleWhileNothingIsReused) {
  SpareMemory spare;
  spare.Created(1000 * kSpareMiB);
  spare.GaveBack(900 * kSpareMiB);
  EXPECT_EQ(spare.keep_bytes(), kLeast);
}

TEST(SpareMemoryTest, MemoryThatHadToBeRecreatedIsKept) {
  SpareMemory spare;
  spare.GaveBack(900 * kSpareMiB);
  spare.Created(300 * kSpareMiB);
  EXPECT_EQ(spare.keep_bytes(), kLeast + 300 * kSpareMiB);
  spare.Created(1000 * kSpareMiB);
  EXPECT_EQ(spare.keep_bytes(), kLeast + 900 * kSpareMiB) << "the rest was never given back";
}

TEST(SpareMemoryTest, MemoryUnusedForAWindowIsReleased) {
  SpareMemory spare;
  spare.GaveBack(900 * kSpareMiB);
  spare.Created(900 * kSpareMiB);
  for (std::uint64_t i = 0; i < SpareMemory::kFirstWindow; ++i)
    spare.Note((i % 2 == 0 ? 800 : 500) * kSpareMiB);
  EXPECT_EQ(spare.keep_bytes(), kLeast + 400 * kSpareMiB);
}

TEST(SpareMemoryTest, AdaptsToIterationsLongerThanTheWindow) {
  SpareMemory spare;
  constexpr std::size_t kSwing = 1000 * kSpareMiB;
  std::size_t unused = 0, created_late = 0;
  for (int iteration = 0; iteration < 30; ++iteration) {
    for (int call = 0; call < 5000; ++call) {  // little in the first half, all in the second
      const std::size_t wanted = call < 2500 ? 0 : kSwing;
      if (wanted > 0 && unused < kSwing) {
        spare.Created(kSwing - unused);
        created_late += iteration >= 15 ? kSwing - unused : 0;
        unused = kSwing;
      }
      spare.Note(unused - wanted);
      if (wanted == 0 && unused > spare.keep_bytes()) {
        spare.GaveBack(unused - spare.keep_bytes());
        unused = spare.keep_bytes();
      }
    }
  }
  EXPECT_EQ(created_late, 0u);
}

}  // namespace
}  // namespace spillway::interposer
