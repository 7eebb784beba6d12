#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/failure.h"
#include "cli/help.h"
#include "cli/shell_quote.h"
#include "cli/wrapped_lines.h"

namespace spillway::cli {
namespace {

using ::testing::HasSubstr;

TEST(ShellQuoteTest, QuotesOnlyTextThatAShellWouldChange) {
  EXPECT_EQ(ShellQuoted("build/bin/train"), "build/bin/train");
  EXPECT_EQ(ShellQuoted("--size=25%peak"), "--size=25%peak");
  EXPECT_EQ(ShellQuoted("two words"), "'two words'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted(""), "''");
}

TEST(FailureTest, NamesFailureReasonAndRemedy) {
  const Failure failure(125, "no driver", "it is not there", "install it\nor simulate");
  EXPECT_EQ(failure.text(),
            "spillway: no driver\n"
            "  why: it is not there\n"
            "  do:  install it\n"
            "       or simulate\n");
}

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

TEST(HelpTest, EveryTopicHasExamplesOrOptions) {
  EXPECT_THAT(HelpText(""), HasSubstr("Examples"));
  EXPECT_THAT(HelpText("run"), HasSubstr("Exit codes"));
  EXPECT_THAT(HelpText("doctor"), HasSubstr("--json"));
  EXPECT_THROW(HelpText("nonsense"), Failure);
}

}  // namespace
}  // namespace spillway::cli
