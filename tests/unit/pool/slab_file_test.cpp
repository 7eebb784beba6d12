#include "agent/pool/slab_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapping.h"

namespace spillway::agent {
namespace {

constexpr int64_t kSize = int64_t{4} << 20;

int64_t PagesOf(const SlabFile& slab) {
  struct stat facts;
  EXPECT_EQ(fstat(slab.file.get(), &facts), 0);
  return facts.st_blocks * 512;
}

TEST(SlabFileTest, NewSlabHasAllItsPagesAndTheyAreZero) {
  const auto slab = MakeSlabFile(kSize, kAnyNode, HugePages::kWhenThereAre, nullptr);

  ASSERT_TRUE(slab.has_value());
  EXPECT_EQ(PagesOf(*slab), kSize);
  EXPECT_GE(slab->page_bytes, 4096);
  const base::Mapping memory(slab->file.get(), kSize);
  for (int64_t at = 0; at < kSize; ++at)
    ASSERT_EQ(static_cast<const char*>(memory.address())[at], 0);
}

TEST(SlabFileTest, HoldersCannotChangeItsSize) {
  const auto slab = MakeSlabFile(kSize, kAnyNode, HugePages::kNever, nullptr);
  ASSERT_TRUE(slab.has_value());

  EXPECT_NE(ftruncate(slab->file.get(), 0), 0);
  EXPECT_NE(ftruncate(slab->file.get(), 2 * kSize), 0);
}

TEST(SlabFileTest, ScrubbedSlabHasNoPages) {
  const auto slab = MakeSlabFile(kSize, kAnyNode, HugePages::kNever, nullptr);
  ASSERT_TRUE(slab.has_value());

  Scrub(*slab);

  EXPECT_EQ(PagesOf(*slab), 0);
}

TEST(SlabFileTest, SlabIsRetiredOnceItIsNeitherOpenNorMapped) {
  for (const HugePages huge : {HugePages::kNever, HugePages::kWhenThereAre}) {
    const auto slab = MakeSlabFile(kSize, kAnyNode, huge, nullptr);
    ASSERT_TRUE(slab.has_value());
    base::UniqueFd lent = Lend(*slab);
    EXPECT_FALSE(Retire(*slab));
    {
      const base::Mapping somebody(lent.get(), kSize);
      ASSERT_TRUE(somebody);
      lent.Reset();
      EXPECT_FALSE(Retire(*slab));
    }

    EXPECT_TRUE(Retire(*slab));
  }
}

// Regression: a process could seal its slab's seals. The agent never saw the slab's end, and the
// pool lost its bytes.
TEST(SlabFileTest, HolderCannotPreventTheAgentFromEndingIt) {
  const auto slab = MakeSlabFile(kSize, kAnyNode, HugePages::kNever, nullptr);
  ASSERT_TRUE(slab.has_value());
  base::UniqueFd lent = Lend(*slab);

  for (const int seal : {F_SEAL_SEAL, F_SEAL_WRITE, F_SEAL_FUTURE_WRITE})
    EXPECT_NE(fcntl(lent.get(), F_ADD_SEALS, seal), 0) << seal;

  lent.Reset();
  Scrub(*slab);
  EXPECT_EQ(PagesOf(*slab), 0);
  EXPECT_TRUE(Retire(*slab));
}

TEST(SlabFileTest, SlabReportsWhetherItIsOnTheRequestedNode) {
  const auto topology = Topology::OfThisMachine();
  ASSERT_NE(topology, nullptr);
  const int node = topology->Nodes().front();

  const auto slab = MakeSlabFile(kSize, node, HugePages::kNever, topology.get());

  ASSERT_TRUE(slab.has_value());
  EXPECT_TRUE(slab->node == node || slab->node == kAnyNode);
}

}  // namespace
}  // namespace spillway::agent
