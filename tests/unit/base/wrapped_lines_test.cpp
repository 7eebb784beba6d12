#include "base/wrapped_lines.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

TEST(WrappedLinesTest, LinesThatFitStayAsTheyAre) {
  EXPECT_EQ(WrappedLines("one two\n\nthree\n", 7, "  ", LongWords::kKeep), "one two\n\nthree\n");
}

TEST(WrappedLinesTest, LongLinesContinueIndentedBehindBlanks) {
  EXPECT_EQ(WrappedLines("spillway: budget 64 bytes on a GPU\nend\n", 20, "  ", LongWords::kKeep),
            "spillway: budget 64\n"
            "  bytes on a GPU\n"
            "end\n");
}

TEST(WrappedLinesTest, ALongWordStaysWholeOrIsCut) {
  const std::string text = "preloading /usr/lib/spillway/libspillway.so now\n";
  EXPECT_EQ(WrappedLines(text, 16, "  ", LongWords::kKeep),
            "preloading\n"
            "  /usr/lib/spillway/libspillway.so\n"
            "  now\n");
  EXPECT_EQ(WrappedLines(text, 16, "  ", LongWords::kCut),
            "preloading\n"
            "  /usr/lib/spill\n"
            "  way/libspillwa\n"
            "  y.so now\n");
}

}  // namespace
}  // namespace spillway::base
