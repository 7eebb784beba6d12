// Which launches count as the same to experiments (execute/launch_kind.h).
#include "interposer/execute/launch_kind.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

namespace spillway::interposer {
namespace {

constexpr CUdeviceptr kBase = CUdeviceptr{1} << 40;
constexpr size_t kRangeBytes = 4 * kMiB;
constexpr std::uint32_t kPointer = 8;

class LaunchKindTest : public testing::Test {
 protected:
  LaunchKindTest() {
    for (size_t i = 0; i < ranges_.size(); ++i) {
      Range& range = ranges_[i];
      range.kind = AllocationKind::kRange;
      range.base = At(i);
      range.requested_bytes = range.size_bytes = kRangeBytes;
      ledger_.AddRange(&range);
    }
  }
  static CUdeviceptr At(size_t range) { return kBase + range * kRangeBytes; }

  LaunchKind KindOfLaunch(std::array<CUdeviceptr, 3> words, std::uint32_t stream = 1) {
    Addresses addresses;
    for (const CUdeviceptr word : words) {
      if (ledger_.MightBeManaged(word)) addresses.push_back(word);
    }
    const std::optional<NamedMemory> memory = MemoryNamedBy(addresses, ledger_);
    if (!memory) return {};
    void* parameters[] = {&words[0], &words[1], &words[2]};
    const std::uint32_t sizes[] = {kPointer, kPointer, kPointer};
    const LaunchCall launch{.parameters = parameters, .parameter_bytes = sizes};
    return KindOf(CallShape(11), launch, stream, *memory, ledger_);
  }
  std::uint64_t Exact(CUdeviceptr a, CUdeviceptr b, CUdeviceptr c) {
    return KindOfLaunch({a, b, c}).exact;
  }

  std::array<Range, 4> ranges_;
  Ledger ledger_;
};

TEST_F(LaunchKindTest, AddressesDoNotCount) {
  EXPECT_EQ(Exact(At(0), At(1), 3), Exact(At(2), At(3), 3));
  EXPECT_EQ(Exact(At(0), At(1), 3), Exact(At(1), At(0), 3));
}

TEST_F(LaunchKindTest, AliasingCounts) {
  EXPECT_NE(Exact(At(0), At(0), At(1)), Exact(At(0), At(1), At(1)));
  EXPECT_NE(Exact(At(0), At(1), At(0)), Exact(At(0), At(1), At(1)));
}

TEST_F(LaunchKindTest, OffsetsCount) {
  EXPECT_NE(Exact(At(0), At(1) + 64, 3), Exact(At(0), At(1), 3));
  EXPECT_EQ(Exact(At(0), At(1) + 64, 3), Exact(At(2), At(3) + 64, 3));
}

TEST_F(LaunchKindTest, NumbersCount) {
  const LaunchKind one = KindOfLaunch({At(0), At(1), 3}), other = KindOfLaunch({At(0), At(1), 4});
  EXPECT_NE(one.exact, other.exact);
  EXPECT_EQ(one.token, other.token) << "plans see one operation";
}

TEST_F(LaunchKindTest, BytesThatNobodyReadsDoNotCount) {
  const auto kind = [this](CUdeviceptr stale, CUdeviceptr on_host, UnreadParts unread) {
    struct {
      CUdeviceptr memory;
      std::uint32_t size, table[2];
      CUdeviceptr on_host;
    } words = {At(1), 5, {7, 0}, on_host};
    std::memcpy(&words.table, &stale, sizeof words.table);
    void* parameters[] = {&words};
    const std::uint32_t sizes[] = {sizeof words};
    Addresses addresses;
    addresses.push_back(At(1));
    const LaunchCall launch{.parameters = parameters, .parameter_bytes = sizes, .unread = unread};
    return KindOf(CallShape(11), launch, 1, *MemoryNamedBy(addresses, ledger_), ledger_).exact;
  };
  UnreadParts unread;
  unread.push_back({0, 12, 8, false});
  unread.push_back({0, 24, 8, true});
  EXPECT_NE(kind(1, 2, {}), kind(3, 2, {}));
  EXPECT_EQ(kind(1, 2, unread), kind(3, 4, unread));
  EXPECT_EQ(kind(1, 2, unread), kind(At(2), 4, unread));
  EXPECT_NE(kind(1, 2, unread), kind(1, At(1), unread)) << "it leads to the launch's memory";
}

TEST_F(LaunchKindTest, ARecordHasNoStaleBytes) {
  CUdeviceptr words[] = {At(0), At(1), At(2)};
  void* parameters[] = {words};
  const std::uint32_t sizes[] = {sizeof words};
  UnreadParts unread;
  unread.push_back({0, 8, 8, false});
  unread.push_back({0, 16, 8, true});
  const auto record =
      RecordedLaunch::Of({.parameters = parameters, .parameter_bytes = sizes, .unread = unread});
  EXPECT_TRUE(record->LeadsInto(At(0), At(0) + 1));
  EXPECT_FALSE(record->LeadsInto(At(1), At(1) + 1));
  EXPECT_TRUE(record->LeadsInto(At(2), At(2) + 1)) << "not known for sure";
  EXPECT_EQ(words[1], At(1)) << "the program's own";
}

TEST_F(LaunchKindTest, SizesCount) {
  const std::uint64_t whole = Exact(At(0), At(1), 3);
  ranges_[1].requested_bytes -= 4;
  EXPECT_NE(Exact(At(0), At(1), 3), whole);
}

TEST_F(LaunchKindTest, StreamsCount) {
  EXPECT_NE(KindOfLaunch({At(0), At(1), 3}, 1).token, KindOfLaunch({At(0), At(1), 3}, 2).token);
}

TEST_F(LaunchKindTest, MemoryThatIsFreedIsUnknown) {
  ledger_.RemoveRange(&ranges_[1]);
  Addresses addresses;
  addresses.push_back(At(0));
  addresses.push_back(At(1));
  const std::optional<NamedMemory> memory = MemoryNamedBy(addresses, ledger_);
  EXPECT_FALSE(memory);
}

TEST_F(LaunchKindTest, MemoryIsNamedOnce) {
  Addresses addresses;
  for (const CUdeviceptr each : {At(2), At(1), At(2) + 8}) addresses.push_back(each);
  const std::optional<NamedMemory> memory = MemoryNamedBy(addresses, ledger_);
  ASSERT_TRUE(memory);
  ASSERT_EQ(memory->size(), 2u);
  EXPECT_EQ((*memory)[0], &ranges_[2]);
  EXPECT_EQ((*memory)[1], &ranges_[1]);
}

// Whether only calls that name memory use it decides whether a launch may be repeated.
TEST_F(LaunchKindTest, OtherUsersAreKnown) {
  Range& range = ranges_[0];
  EXPECT_TRUE(IsUsedByName(range, 0));
  range.holds = 1;
  EXPECT_FALSE(IsUsedByName(range, 0)) << "an owner keeps it in place";
  range.holds = 0;
  range.pins = 1;
  EXPECT_FALSE(IsUsedByName(range, 0)) << "another call is using it";
  EXPECT_TRUE(IsUsedByName(range, 1));
  range.pins = 0;
  range.unmovable = Unmovable::kShared;
  EXPECT_FALSE(IsUsedByName(range, 0)) << "another process maps it";
  range.unmovable = Unmovable::kNo;
  range.free_is_due = true;
  EXPECT_FALSE(IsUsedByName(range, 0));
}

TEST_F(LaunchKindTest, WordsThatLeadToTheProcessesMemory) {
  const auto on_host = std::make_unique<int>(7);
  const auto leads = [this](CUdeviceptr word) {
    void* parameters[] = {&word};
    const std::uint32_t sizes[] = {kPointer};
    const auto launch = RecordedLaunch::Of({.parameters = parameters, .parameter_bytes = sizes});
    return LeadsToPageable(*launch, ledger_);
  };
  EXPECT_TRUE(leads(reinterpret_cast<CUdeviceptr>(on_host.get())));
  EXPECT_FALSE(leads(At(1))) << "it is the job's";
  EXPECT_FALSE(leads(1000));
  EXPECT_FALSE(leads(CUdeviceptr{1} << 56)) << "nothing lies there";
}

}  // namespace
}  // namespace spillway::interposer
