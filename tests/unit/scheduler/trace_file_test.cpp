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

IterationProfile AlexnetProfile() {
  networks::TrainingStep step = networks::MakeTrainingStep(*networks::MakeNetwork("alexnet", 2),
                                                           networks::UpdatePlace::kAtEnd);
  networks::SetDurations(step, {4'000'000'000'000, 200'000'000'000, 2'000});
  return step.profile;
}

EventTrace SmallTrace() {
  EventTrace trace{"job", {"gemm 4x4", "relu 16"}, {}};
  trace.events = {{EventKind::kAllocate, 0, 1, 64, -1, 0, 0, {}},
                  {EventKind::kAllocate, 1, 2, 32, -1, 0, 0, {}},
                  {EventKind::kOperation, 2, -1, 0, 0, 7, 10, {{1, true, false}, {2, false, true}}},
                  {EventKind::kOperation, 3, -1, 0, 1, 7, 5, {{2, true, true}}},
                  {EventKind::kFree, 4, 2, 0, -1, 0, 0, {}, 3},
                  {EventKind::kSynchronize, 5, -1, 0, -1, 7, 0, {}}};
  return trace;
}

TEST(ProfileFileTest, ReadsBackWhatWasWritten) {
  const IterationProfile profile = AlexnetProfile();
  const std::vector<uint8_t> bytes = WriteProfile(profile);
  EXPECT_EQ(KindOfFile(bytes), TraceFileKind::kProfile);
  const base::Result<IterationProfile> read = ReadProfile(bytes);
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_EQ(*read, profile);
  EXPECT_EQ(WriteProfile(*read), bytes);
}

TEST(TraceFileTest, ReadsBackWhatWasWritten) {
  const base::Result<EventTrace> read = ReadTrace(WriteTrace(SmallTrace()));
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_EQ(*read, SmallTrace());
}

TEST(TraceFileTest, EveryTruncationIsAnError) {
  const std::vector<uint8_t> profile = WriteProfile(AlexnetProfile());
  for (size_t size = 0; size < profile.size(); size += 1 + size / 50)
    EXPECT_FALSE(ReadProfile(std::span(profile).first(size)).ok()) << size;
  const std::vector<uint8_t> trace = WriteTrace(SmallTrace());
  for (size_t size = 0; size < trace.size(); ++size) {
    EXPECT_FALSE(ReadTrace(std::span(trace).first(size)).text().empty()) << size;
  }
}

TEST(TraceFileTest, OtherKindOrVersionIsNamed) {
  EXPECT_THAT(ReadProfile(WriteTrace(SmallTrace())).text(), HasSubstr("another kind"));
  EXPECT_THAT(ReadTrace(WriteProfile(AlexnetProfile())).text(), HasSubstr("another kind"));
  // The version is the root's only two-byte field with the value 1.
  std::vector<uint8_t> bytes = WriteTrace({"", {}, {}});
  bool found = false;
  for (size_t i = 8; i + 1 < bytes.size() && !found; ++i) {
    std::vector<uint8_t> changed = bytes;
    if (changed[i] == 1 && changed[i + 1] == 0) changed[i] = 9;
    found = ReadTrace(changed).text().find("version 9") != std::string::npos;
  }
  EXPECT_TRUE(found);
}

TEST(TraceFileTest, ImpossibleLengthIsDamage) {
  const std::vector<uint8_t> bytes = WriteProfile(AlexnetProfile());
  int refused = 0;
  for (size_t i = 0; i + 4 <= 2000; i += 4) {
    std::vector<uint8_t> hostile = bytes;
    hostile[i] = hostile[i + 1] = hostile[i + 2] = 0xF0;
    hostile[i + 3] = 0x7F;
    const base::Result<IterationProfile> read = ReadProfile(hostile);
    refused += read ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
}

TEST(TraceFileTest, FileThatReferencesOneVectorAThousandTimesIsRefusedBeforeItIsBuilt) {
  // Given a valid file of one operation that reads 1000 buffers and 999 that read none
  IterationProfile profile;
  for (int i = 0; i < 1000; ++i) profile.buffers.push_back(testing::Persistent("b", 1));
  profile.operations.resize(1000);
  for (int i = 0; i < 1000; ++i) profile.operations[0].reads.push_back({i});
  profile.operations[1].reads = {{0}};
  std::vector<uint8_t> bytes = WriteProfile(profile);
  ASSERT_TRUE(ReadProfile(bytes).ok());

  // When its vector of operations refers to the first operation a thousand times
  uint32_t offset = 0;
  size_t vector_at = 0;
  for (size_t i = 8; i + 8 < bytes.size() && vector_at == 0; i += 4) {
    uint32_t length = 0;
    std::memcpy(&length, &bytes[i], 4);
    std::memcpy(&offset, &bytes[i + 4], 4);
    // The first such vector is that of the operations, which are written last.
    if (length == 1000 && offset > 4000) vector_at = i;
  }
  ASSERT_GT(vector_at, 0u);
  for (uint32_t i = 1; i < 1000; ++i) {
    const uint32_t nearer = offset - 4 * i;
    std::memcpy(&bytes[vector_at + 4 + 4 * i], &nearer, 4);
  }

  // Then a million reads are not built
  EXPECT_THAT(ReadProfile(bytes).text(), HasSubstr("more than it does"));
}

TEST(TraceFileTest, RandomDamageIsAlwaysChecked) {
  const std::vector<uint8_t> profile = WriteProfile(AlexnetProfile()),
                             trace = WriteTrace(SmallTrace());
  testing::Dice dice(4);
  for (int round = 0; round < 3'000; ++round) {
    std::vector<uint8_t> damaged = round % 2 ? profile : trace;
    for (int64_t changes = dice.Roll(1, 8); changes > 0; --changes)
      damaged[static_cast<size_t>(dice.Roll(0, static_cast<int64_t>(damaged.size()) - 1))] =
          static_cast<uint8_t>(dice.Roll(0, 255));
    const base::Result<IterationProfile> read_one = ReadProfile(damaged);
    EXPECT_TRUE(!read_one || CheckProfile(*read_one).ok());
    const base::Result<EventTrace> read_other = ReadTrace(damaged);
    EXPECT_TRUE(!read_other || CheckTrace(*read_other).ok());
  }
}

TEST(TraceFileTest, ProfilesThatBreakAnInvariantAreRefusedWithTheReason) {
  IterationProfile profile = AlexnetProfile();
  profile.buffers[1].size_bytes = -5;
  EXPECT_THAT(ReadProfile(WriteProfile(profile)).text(), HasSubstr("no positive size"));
  profile = AlexnetProfile();
  std::swap(profile.buffers[1].born, profile.buffers[1].dies);
  EXPECT_THAT(ReadProfile(WriteProfile(profile)).text(), HasSubstr("dies before it is born"));
  profile = AlexnetProfile();
  profile.buffers[0].kind = static_cast<BufferKind>(99);
  EXPECT_THAT(ReadProfile(WriteProfile(profile)).text(), HasSubstr("does not know"));
}

TEST(EventTest, RefusesImpossibleLifetimes) {
  const auto complaint = [](size_t event, auto change) {
    EventTrace trace = SmallTrace();
    change(trace.events[event]);
    return CheckTrace(trace).text();
  };
  EXPECT_EQ(CheckTrace(SmallTrace()).text(), "");
  EXPECT_THAT(complaint(1, [](Event& event) { event.allocation = 1; }), HasSubstr("made twice"));
  EXPECT_THAT(complaint(1, [](Event& event) { event.size_bytes = -1; }),
              HasSubstr("no possible size"));
  EXPECT_THAT(complaint(2, [](Event& event) { event.identity = 2; }), HasSubstr("identity"));
  EXPECT_THAT(complaint(2, [](Event& event) { event.touches[0].allocation = 3; }),
              HasSubstr("never allocated"));
  EXPECT_THAT(complaint(3, [](Event& event) { event.start_ns = 1; }), HasSubstr("backwards"));
  EXPECT_THAT(complaint(3, [](Event& event) { event.duration_ns = -1; }), HasSubstr("duration"));
  EXPECT_THAT(complaint(4, [](Event& event) { event.allocation = 5; }),
              HasSubstr("never allocated"));
  EXPECT_THAT(complaint(5, [](Event& event) { event = {EventKind::kFree, 6, 2, 0, -1, 0, 0, {}}; }),
              HasSubstr("freed twice"));
}

TEST(EventTest, CutBeginsWithTheLiveAllocations) {
  const EventTrace cut = CutTrace(SmallTrace(), 3, 5);
  ASSERT_EQ(cut.events.size(), 4u);
  EXPECT_EQ(cut.events[0].allocation, 1);
  EXPECT_EQ(cut.events[1].allocation, 2);
  EXPECT_EQ(CheckTrace(cut).text(), "");
}

TEST(EventTest, TraceBecomesAProfileWithPersistentBuffers) {
  const IterationProfile profile = ProfileFromTrace(SmallTrace());
  ASSERT_EQ(CheckProfile(profile).text(), "");
  ASSERT_EQ(profile.operations.size(), 2u);
  EXPECT_TRUE(profile.buffers[0].persistent);
  EXPECT_FALSE(profile.buffers[1].persistent);
  EXPECT_EQ(profile.buffers[1].dies, OperationId{1});
  EXPECT_EQ(profile.operations[1].name, "relu 16");
}

}  // namespace
}  // namespace spillway::scheduler
