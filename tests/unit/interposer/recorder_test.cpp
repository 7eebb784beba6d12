#include "interposer/record/recorder.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace spillway::interposer {
namespace {

constexpr std::uint64_t kShape = 7;

std::string NameOf(const Recorder::Drained& drained) {
  switch (drained.event.kind) {
    case RecordedKind::kAllocate:
      return "allocate " + std::to_string(drained.event.allocation) + " of " +
             std::to_string(drained.event.value);
    case RecordedKind::kFree:
      return "free " + std::to_string(drained.event.allocation);
    case RecordedKind::kSynchronize:
      return "synchronize";
    case RecordedKind::kOperation:
      break;
  }
  std::string name = "operation " + std::to_string(drained.event.value);
  for (const RecordedTouch& touch : drained.touches)
    name += (touch.writes ? " writes " : " reads ") + std::to_string(touch.allocation);
  return name;
}

std::vector<std::string> DrainAll(Recorder* recorder) {
  std::vector<std::string> names;
  Recorder::Drained drained;
  while (recorder->Next(&drained)) names.push_back(NameOf(drained));
  return names;
}

std::uint64_t CountAll(Recorder* recorder) {
  std::uint64_t count = 0;
  Recorder::Drained drained;
  while (recorder->Next(&drained)) ++count;
  return count;
}

TEST(RecorderTest, ReturnsRecordedEvents) {
  Recorder recorder(LearnChoice::kAlways);
  recorder.Begin({});

  recorder.Allocated(1, 4096);
  const std::array<RecordedTouch, 2> touches{{{1, true}, {2, false}}};
  recorder.Enqueued(kShape, touches);
  recorder.Freed(1);
  recorder.Synchronized();

  EXPECT_EQ(DrainAll(&recorder),
            (std::vector<std::string>{"allocate 1 of 4096", "operation 7 writes 1 reads 2",
                                      "free 1", "synchronize"}));
  EXPECT_EQ(recorder.recorded_events(), 4u);
}

TEST(RecorderTest, BeginsAccordingToItsLearnChoice) {
  EXPECT_FALSE(Recorder(LearnChoice::kOff).Awaits(true));
  EXPECT_TRUE(Recorder(LearnChoice::kAlways).Awaits(false));
  EXPECT_FALSE(Recorder(LearnChoice::kAuto).Awaits(false));
  EXPECT_TRUE(Recorder(LearnChoice::kAuto).Awaits(true));

  Recorder recorder(LearnChoice::kAuto);
  EXPECT_FALSE(recorder.IsRecording());
  recorder.Begin({});
  EXPECT_TRUE(recorder.IsRecording());
  EXPECT_FALSE(recorder.Awaits(true));
}

TEST(RecorderTest, ReportsLiveAllocationsAtTheBeginOfARecording) {
  // Given an ended recording with events still to drain, and one that begins after it
  Recorder recorder(LearnChoice::kAuto);
  std::vector<LiveAllocation> live;
  recorder.Begin({{1, 100}});
  ASSERT_TRUE(recorder.TakeRecordingStart(&live));
  recorder.Synchronized();
  recorder.End();
  recorder.Begin({{5, 500}, {6, 600}});
  recorder.Freed(5);

  // When the reader asks before it has reached that point
  // Then it learns nothing yet
  EXPECT_FALSE(recorder.TakeRecordingStart(&live));
  Recorder::Drained drained;
  ASSERT_TRUE(recorder.Next(&drained));
  ASSERT_TRUE(recorder.TakeRecordingStart(&live));
  EXPECT_EQ(live.size(), 2u);
  EXPECT_EQ(live[1].requested_bytes, 600);
  ASSERT_TRUE(recorder.Next(&drained));
  EXPECT_EQ(NameOf(drained), "free 5");
}

TEST(RecorderTest, DropsAndCountsEventsBeyondItsCapacity) {
  Recorder recorder(LearnChoice::kAlways);
  recorder.Begin({});
  constexpr std::uint64_t kTold = EventRing::kWords;

  for (std::uint64_t i = 0; i < kTold; ++i) recorder.Freed(i);

  EXPECT_GT(recorder.dropped_events(), 0u);
  EXPECT_EQ(recorder.recorded_events() + recorder.dropped_events(), kTold);
  EXPECT_EQ(CountAll(&recorder), recorder.recorded_events());
  recorder.Freed(1);
  EXPECT_EQ(CountAll(&recorder), 1u);
}

TEST(RecorderTest, OperationWithTooManyAllocationsIsDropped) {
  Recorder recorder(LearnChoice::kAlways);
  recorder.Begin({});

  recorder.Enqueued(kShape, std::vector<RecordedTouch>(EventRing::kMostTouches + 1));

  EXPECT_EQ(recorder.dropped_events(), 1u);
  EXPECT_EQ(CountAll(&recorder), 0u);
}

TEST(RecorderTest, WrapsAroundItsRingManyTimes) {
  Recorder recorder(LearnChoice::kAlways);
  recorder.Begin({});
  const std::array<RecordedTouch, 3> touches{
      {{~std::uint64_t{0} >> 2, true}, {2, false}, {3, true}}};

  for (std::uint64_t i = 0; i < 40'000; ++i) {
    recorder.Enqueued(i, touches);
    Recorder::Drained drained;
    ASSERT_TRUE(recorder.Next(&drained));
    ASSERT_EQ(drained.event.value, i);
    ASSERT_EQ(drained.touches[0].allocation, ~std::uint64_t{0} >> 2);
    ASSERT_EQ(drained.touches[2].allocation, 3u);
  }
  EXPECT_EQ(recorder.dropped_events(), 0u);
}

TEST(RecorderTest, MergesThreadsEventsInOneOrder) {
  // Given threads that record at once, each its own number in ascending shapes, while a reader
  // drains
  Recorder recorder(LearnChoice::kAlways);
  recorder.Begin({});
  constexpr std::uint64_t kThreads = 4, kEach = 4'000;
  static_assert(kThreads * kEach * 4 <= EventRing::kWords,
                "threads one after another may share one ring");
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&recorder, thread] {
      for (std::uint64_t i = 0; i < kEach; ++i) recorder.Enqueued(thread << 32 | i, {});
    });
  }

  std::uint64_t next[kThreads] = {}, ticket = 0;
  Recorder::Drained drained;
  while (ticket < kThreads * kEach) {
    if (!recorder.Next(&drained)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(drained.event.ticket, ticket++);
    ASSERT_EQ(drained.event.value & 0xffffffff, next[drained.event.value >> 32]++);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(RecorderTest, EndedThreadsEventsAreDrainedAndItsRingIsReused) {
  // Given a recorder for many short-lived threads, with more events than one ring holds
  Recorder recorder(LearnChoice::kAlways);
  recorder.Begin({});
  constexpr int kThreads = 40;
  std::uint64_t drained = 0;

  for (int thread = 0; thread < kThreads; ++thread) {
    std::thread([&recorder] {
      for (std::uint64_t i = 0; i < EventRing::kWords / 8; ++i) recorder.Freed(i);
    }).join();
    drained += CountAll(&recorder);
  }

  EXPECT_EQ(drained, kThreads * (EventRing::kWords / 8));
}

TEST(RecorderTest, SuccessiveRecordersDoNotMixTheirEvents) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    Recorder one(LearnChoice::kAlways), other(LearnChoice::kAlways);
    one.Begin({});
    other.Begin({});
    one.Freed(i);
    other.Freed(100 + i);
    one.Freed(i);

    EXPECT_EQ(DrainAll(&one), (std::vector<std::string>(2, "free " + std::to_string(i))));
    other.Freed(1);  // remains in the first recorder
  }
}

class Listener final : public RecordListener {
 public:
  void ServeEvents() override { ++told; }
  int told = 0;
};

TEST(RecorderTest, NotifiesItsListenerFromTheBeginOfARecording) {
  Recorder recorder(LearnChoice::kAuto);
  Listener listener;
  recorder.Attach(&listener, false);
  recorder.Settle();
  EXPECT_EQ(listener.told, 0);

  recorder.Begin({});
  recorder.Settle();
  recorder.Settle();
  EXPECT_EQ(listener.told, 2);

  recorder.StopNotifying();
  recorder.Settle();
  EXPECT_EQ(listener.told, 2);
}

TEST(RecorderTest, BeginsAtOnceForAListenerThatKnowsTheJob) {
  Recorder recorder(LearnChoice::kAuto), off(LearnChoice::kOff);
  Listener listener;

  recorder.Attach(&listener, true);
  off.Attach(&listener, true);

  EXPECT_TRUE(recorder.Awaits(false));
  EXPECT_FALSE(off.Awaits(true));
}

}  // namespace
}  // namespace spillway::interposer
