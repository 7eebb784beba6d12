#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/failure.h"
#include "cli/help.h"
#include "cli/shell_quote.h"

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

TEST(HelpTest, EveryTopicHasExamplesOrOptions) {
  EXPECT_THAT(HelpText(""), HasSubstr("Examples"));
  EXPECT_THAT(HelpText("run"), HasSubstr("Exit codes"));
  EXPECT_THAT(HelpText("doctor"), HasSubstr("--json"));
  EXPECT_THROW(HelpText("nonsense"), Failure);
}

}  // namespace
}  // namespace spillway::cli
