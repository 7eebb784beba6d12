#include "scheduler/trace/file/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "scheduler/networks/catalog.h"
#include "scheduler/networks/training_step.h"
#include "tests/unit/scheduler/random_problem.h"

namespace spillway::scheduler {
namespace {

using ::testing::HasSubstr;

IterationProfile alexnet_profile() {
  networks::TrainingStep step =
      networks::training_step(*networks::make_network("alexnet", 2), networks::UpdatePlace::kAtEnd);
  networks::set_durations(step, {4'000'000'000'000, 200'000'000'000, 2'000});
  return step.profile;
}

EventTrace small_trace() {
  EventTrace trace{"job", {"gemm 4x4", "relu 16"}, {}};
  trace.events = {{EventKind::kAllocate, 0, 1, 64, -1, 0, 0, {}},
                  {EventKind::kAllocate, 1, 2, 32, -1, 0, 0, {}},
                  {EventKind::kOperation, 2, -1, 0, 0, 7, 10, {{1, true, false}, {2, false, true}}},
                  {EventKind::kOperation, 3, -1, 0, 1, 7, 5, {{2, true, true}}},
                  {EventKind::kFree, 4, 2, 0, -1, 0, 0, {}},
                  {EventKind::kSynchronize, 5, -1, 0, -1, 7, 0, {}}};
  return trace;
}

TEST(ProfileFileTest, WhatIsWrittenIsRead) {
  const IterationProfile profile = alexnet_profile();
  const std::vector<uint8_t> bytes = write_profile(profile);
  EXPECT_EQ(kind_of_file(bytes), TraceFileKind::kProfile);
  const ReadResult<IterationProfile> read = read_profile(bytes);
  ASSERT_TRUE(read.value.has_value()) << read.error;
  EXPECT_EQ(*read.value, profile);
  EXPECT_EQ(write_profile(*read.value), bytes);
}

TEST(TraceFileTest, WhatIsWrittenIsRead) {
  const ReadResult<EventTrace> read = read_trace(write_trace(small_trace()));
  ASSERT_TRUE(read.value.has_value()) << read.error;
  EXPECT_EQ(*read.value, small_trace());
}

TEST(TraceFileTest, EveryTruncationIsAnError) {
  const std::vector<uint8_t> profile = write_profile(alexnet_profile());
  for (size_t size = 0; size < profile.size(); size += 1 + size / 50)
    EXPECT_FALSE(read_profile(std::span(profile).first(size)).value.has_value()) << size;
  const std::vector<uint8_t> trace = write_trace(small_trace());
  for (size_t size = 0; size < trace.size(); ++size) {
    EXPECT_FALSE(read_trace(std::span(trace).first(size)).error.empty()) << size;
  }
}

TEST(TraceFileTest, AnotherKindOrVersionIsNamed) {
  EXPECT_THAT(read_profile(write_trace(small_trace())).error, HasSubstr("another kind"));
  EXPECT_THAT(read_trace(write_profile(alexnet_profile())).error, HasSubstr("another kind"));
  // The version is the only field of the root with the value 1 in two bytes.
  std::vector<uint8_t> bytes = write_trace({"", {}, {}});
  bool found = false;
  for (size_t i = 8; i + 1 < bytes.size() && !found; ++i) {
    std::vector<uint8_t> changed = bytes;
    if (changed[i] == 1 && changed[i + 1] == 0) changed[i] = 9;
    found = read_trace(changed).error.find("version 9") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

TEST(TraceFileTest, AClaimOfTenGigabytesIsDamage) {
  // Given a file whose every 4-byte word in turn claims to be a length or an offset of gigabytes
  const std::vector<uint8_t> bytes = write_profile(alexnet_profile());
  int refused = 0;
  for (size_t i = 0; i + 4 <= 2000; i += 4) {
    std::vector<uint8_t> hostile = bytes;
    hostile[i] = hostile[i + 1] = hostile[i + 2] = 0xF0;
    hostile[i + 3] = 0x7F;
    const ReadResult<IterationProfile> read = read_profile(hostile);
    refused += read.value ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

TEST(TraceFileTest, AFileThatUsesOneVectorAThousandTimesIsRefusedBeforeItIsBuilt) {
  // Given an honest file of one operation that reads 1000 buffers and 999 that read none
  IterationProfile profile;
  for (int i = 0; i < 1000; ++i) profile.buffers.push_back(testing::persistent("b", 1));
  profile.operations.resize(1000);
  for (int i = 0; i < 1000; ++i) profile.operations[0].reads.push_back({i});
  profile.operations[1].reads = {{0}};
  std::vector<uint8_t> bytes = write_profile(profile);
  ASSERT_TRUE(read_profile(bytes).value.has_value());

  // When its vector of operations names the first operation a thousand times
  uint32_t offset = 0;
  size_t vector_at = 0;
  for (size_t i = 8; i + 8 < bytes.size() && vector_at == 0; i += 4) {
    uint32_t length = 0;
    std::memcpy(&length, &bytes[i], 4);
    std::memcpy(&offset, &bytes[i + 4], 4);
    // The first such vector is that of the operations, which were written last.
    if (length == 1000 && offset > 4000) vector_at = i;
  }
  ASSERT_GT(vector_at, 0u);
  for (uint32_t i = 1; i < 1000; ++i) {
    const uint32_t nearer = offset - 4 * i;
    std::memcpy(&bytes[vector_at + 4 + 4 * i], &nearer, 4);
  }

  // Then a million reads are not built
  EXPECT_THAT(read_profile(bytes).error, HasSubstr("more than it does"));
}

TEST(TraceFileTest, RandomDamageNeverGetsThroughUnchecked) {
  const std::vector<uint8_t> profile = write_profile(alexnet_profile()), trace = write_trace(small_trace());
  testing::Dice dice(4);
  for (int round = 0; round < 3'000; ++round) {
    std::vector<uint8_t> damaged = round % 2 ? profile : trace;
    for (int64_t changes = dice.roll(1, 8); changes > 0; --changes)
      damaged[static_cast<size_t>(dice.roll(0, static_cast<int64_t>(damaged.size()) - 1))] =
          static_cast<uint8_t>(dice.roll(0, 255));
    const ReadResult<IterationProfile> read_one = read_profile(damaged);
    EXPECT_TRUE(!read_one.value || !check_profile(*read_one.value));
    const ReadResult<EventTrace> read_other = read_trace(damaged);
    EXPECT_TRUE(!read_other.value || !check_trace(*read_other.value));
  }
}

TEST(TraceFileTest, ProfilesThatBreakAnInvariantAreRefusedWithTheReason) {
  IterationProfile profile = alexnet_profile();
  profile.buffers[1].size_bytes = -5;
  EXPECT_THAT(read_profile(write_profile(profile)).error, HasSubstr("no positive size"));
  profile = alexnet_profile();
  std::swap(profile.buffers[1].born, profile.buffers[1].dies);
  EXPECT_THAT(read_profile(write_profile(profile)).error, HasSubstr("dies before it is born"));
  profile = alexnet_profile();
  profile.buffers[0].kind = static_cast<BufferKind>(99);
  EXPECT_THAT(read_profile(write_profile(profile)).error, HasSubstr("does not know"));
}

TEST(EventTest, RefusesLivesThatCannotBe) {
  const auto complaint = [](size_t event, auto change) {
    EventTrace trace = small_trace();
    change(trace.events[event]);
    return check_trace(trace).value_or("none");
  };
  EXPECT_EQ(check_trace(small_trace()), std::nullopt);
  EXPECT_THAT(complaint(1, [](Event& event) { event.allocation = 1; }), HasSubstr("made twice"));
  EXPECT_THAT(complaint(1, [](Event& event) { event.size_bytes = -1; }), HasSubstr("no possible size"));
  EXPECT_THAT(complaint(2, [](Event& event) { event.identity = 2; }), HasSubstr("identity"));
  EXPECT_THAT(complaint(2, [](Event& event) { event.touches[0].allocation = 3; }),
              HasSubstr("never allocated"));
  EXPECT_THAT(complaint(3, [](Event& event) { event.start_ns = 1; }), HasSubstr("backwards"));
  EXPECT_THAT(complaint(3, [](Event& event) { event.duration_ns = -1; }), HasSubstr("duration"));
  EXPECT_THAT(complaint(4, [](Event& event) { event.allocation = 5; }), HasSubstr("never allocated"));
  EXPECT_THAT(complaint(5, [](Event& event) { event = {EventKind::kFree, 6, 2, 0, -1, 0, 0, {}}; }),
              HasSubstr("freed twice"));
}

TEST(EventTest, ACutBeginsWithWhatIsAlive) {
  const EventTrace cut = cut_trace(small_trace(), 3, 5);
  ASSERT_EQ(cut.events.size(), 4u);
  EXPECT_EQ(cut.events[0].allocation, 1);
  EXPECT_EQ(cut.events[1].allocation, 2);
  EXPECT_EQ(check_trace(cut), std::nullopt);
}

TEST(EventTest, ATraceBecomesAProfileInWhichWhatStaysPersists) {
  const IterationProfile profile = profile_from_trace(small_trace());
  ASSERT_EQ(check_profile(profile), std::nullopt);
  ASSERT_EQ(profile.operations.size(), 2u);
  EXPECT_TRUE(profile.buffers[0].persistent);
  EXPECT_FALSE(profile.buffers[1].persistent);
  EXPECT_EQ(profile.buffers[1].dies, OperationId{1});
  EXPECT_EQ(profile.operations[1].name, "relu 16");
}

}  // namespace
}  // namespace spillway::scheduler
