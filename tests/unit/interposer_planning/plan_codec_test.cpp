#include "scheduler/plan/plan_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "tests/unit/interposer_planning/small_job.h"

namespace spillway::interposer {
namespace {

using ::testing::HasSubstr;

std::string RefusalOf(const std::vector<std::byte>& bytes) {
  const base::Result<StoredPlan> read = scheduler::Decode(bytes);
  return read ? "accepted" : read.text();
}

TEST(PlanCodecTest, SmallJobsPatternIsSound) {
  EXPECT_EQ(scheduler::CheckProfile(SmallPattern().profile).text(), "");
}

TEST(PlanCodecTest, DecodesWhatItEncoded) {
  StoredPlan stored = SmallStoredPlan();
  stored.plan.actions = {{.kind = scheduler::ActionKind::kOffload, .buffer = {2}, .step = 3},
                         {.kind = scheduler::ActionKind::kPrefetch, .buffer = {2}, .step = 8}};

  const base::Result<StoredPlan> read = scheduler::Decode(Encode(stored));

  ASSERT_TRUE(read) << read.text();
  EXPECT_EQ(read->pattern.events, stored.pattern.events);
  EXPECT_EQ(read->pattern.touches, stored.pattern.touches);
  EXPECT_EQ(read->pattern.buffers, stored.pattern.buffers);
  EXPECT_EQ(read->pattern.profile, stored.pattern.profile);
  EXPECT_EQ(read->pattern.fingerprint, stored.pattern.fingerprint);
  EXPECT_EQ(read->plan, stored.plan);
  EXPECT_EQ(read->budget_bytes, stored.budget_bytes);
  EXPECT_EQ(read->job_budget_bytes, stored.job_budget_bytes);
}

TEST(PlanCodecTest, AllocationsOfAnotherProcessAreNotKept) {
  StoredPlan stored = SmallStoredPlan();
  stored.pattern.buffers[0].allocation = 12;

  const base::Result<StoredPlan> read = scheduler::Decode(Encode(stored));

  ASSERT_TRUE(read) << read.text();
  EXPECT_EQ(read->pattern.buffers[0].allocation, 0u);
}

TEST(PlanCodecTest, TruncatedBytesAreRefused) {
  const std::vector<std::byte> whole = Encode(SmallStoredPlan());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_NE(RefusalOf({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}),
              "accepted")
        << size;
  }
}

TEST(PlanCodecTest, EveryAlteredByteIsRefused) {
  const std::vector<std::byte> whole = Encode(SmallStoredPlan());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> altered = whole;
    altered[at] ^= std::byte{0x40};
    ASSERT_NE(RefusalOf(altered), "accepted") << at;
  }
}

TEST(PlanCodecTest, OtherVersionIsNamed) {
  std::vector<std::byte> bytes = Encode(SmallStoredPlan());
  bytes[8] = std::byte{99};
  EXPECT_EQ(RefusalOf(bytes), "it is of version 99");
}

TEST(PlanCodecTest, TrailingBytesAreRefused) {
  std::vector<std::byte> bytes = Encode(SmallStoredPlan());
  bytes.push_back(std::byte{0});
  EXPECT_EQ(RefusalOf(bytes), "it is damaged");
}

// Complete and with the right hash, but its maker violates the invariants.
TEST(PlanCodecTest, PatternWithUnknownReferencesIsRefused) {
  const auto refusal_after = [](auto change) {
    StoredPlan stored = SmallStoredPlan();
    change(&stored);
    return RefusalOf(Encode(stored));
  };
  EXPECT_EQ(refusal_after([](StoredPlan*) {}), "accepted");
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.touches[3].buffer = 99; }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.touches[3].buffer = -1; }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.events[0].buffer = 99; }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.events[1].operation = 1; }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.events[1].first_touch = INT32_MAX; }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.events[1].touch_count = -1; }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.buffers[1].born_event = 1000; }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->pattern.buffers.pop_back(); }),
              HasSubstr("not there"));
  EXPECT_THAT(
      refusal_after([](StoredPlan* s) {
        s->plan.actions.push_back({.kind = static_cast<scheduler::ActionKind>(7), .buffer = {1}});
      }),
      HasSubstr("not there"));
  EXPECT_NE(refusal_after([](StoredPlan* s) { s->pattern.profile.buffers[1].size_bytes = -1; }),
            "accepted");
  EXPECT_THAT(refusal_after([](StoredPlan* s) { ++s->pattern.fingerprint; }),
              HasSubstr("fingerprint"));
  EXPECT_THAT(refusal_after([](StoredPlan* s) { s->budget_bytes = 0; }), HasSubstr("budget"));
}

}  // namespace
}  // namespace spillway::interposer
