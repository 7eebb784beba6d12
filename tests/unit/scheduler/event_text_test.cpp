#include "scheduler/trace/event_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace spillway::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

base::Result<EventTrace> Read(const std::string& lines) {
  return ReadEventText(std::string(kEventTextHead) + lines);
}

TEST(EventTextTest, EachLineIsAnEvent) {
  const base::Result<EventTrace> read = Read(
      "a 1 64\n"
      "i 00000000000000ff\n"
      "t 2\n"
      "a 2 32\n"
      "o 0 1r 2w\n"
      "o 0 2\n"
      "f 2\n"
      "s\n");
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_THAT(read->identities, ElementsAre("00000000000000ff"));
  EXPECT_EQ(ShapeOf(read->identities[0]), 255u);
  EXPECT_THAT(
      read->events,
      ElementsAre(
          Event{EventKind::kAllocate, 0, 1, 64, -1, 0, 0, {}, 0},
          Event{EventKind::kAllocate, 0, 2, 32, -1, 0, 0, {}, 2},
          Event{EventKind::kOperation, 0, -1, 0, 0, 0, 0, {{1, true, false}, {2, false, true}}, 2},
          Event{EventKind::kOperation, 0, -1, 0, 0, 0, 0, {{2, true, true}}, 2},
          Event{EventKind::kFree, 0, 2, 0, -1, 0, 0, {}, 2},
          Event{EventKind::kSynchronize, 0, -1, 0, -1, 0, 0, {}, 2}));
}

TEST(EventTextTest, OperationsTakeTheMeanOfTheirMeasuredTimes) {
  const base::Result<EventTrace> read = Read("i a\no 0\ni b\no 1\no 0\nd 0 10\nd 0 20\n");
  ASSERT_TRUE(read.ok()) << read.text();
  EXPECT_EQ(read->events[0].duration_ns, 15);
  EXPECT_EQ(read->events[1].duration_ns, 0);
  EXPECT_EQ(read->events[2].start_ns, 15);
  EXPECT_EQ(read->events[2].duration_ns, 15);
}

TEST(EventTextTest, DamageIsNamedByItsLine) {
  for (const char* const line :
       {"x 1\n", "a 1\n", "a 1 2 3\n", "a one 2\n", "f\n", "f 1 2\n", "o\n", "o 0 1x\n", "o 0 r\n",
        "t\n", "t 1 2\n", "s 1\n", "i xyz\n", "d 7 1\n", "d 0\n", "d 0 -1\n", "\n",
        "a 99999999999 1\n", "a 1 99999999999999999999\n"}) {
    EXPECT_THAT(Read(std::string("i 1\na 7 64\n") + line).text(), HasSubstr("line 4")) << line;
  }
  EXPECT_THAT(ReadEventText("spillway events 2\n").text(), HasSubstr("no events"));
}

TEST(EventTextTest, TheInvariantsOfATraceHold) {
  EXPECT_THAT(Read("i 1\no 0 5\n").text(), HasSubstr("never allocated"));
  EXPECT_THAT(Read("o 0\n").text(), HasSubstr("identity"));
  EXPECT_THAT(Read("a 1 8\nf 1\nf 1\n").text(), HasSubstr("freed twice"));
  EXPECT_THAT(Read("i 1\no 0\nd 0 36028797018963968\nd 0 36028797018963968\nd 0 1\n").text(),
              HasSubstr("line 6"));
}

}  // namespace
}  // namespace spillway::scheduler
