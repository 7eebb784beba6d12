#include "base/lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spillway::base {
namespace {

using Lines = std::vector<std::string_view>;

Lines LinesOf(std::string_view rest) {
  Lines lines;
  while (const auto line = TakeLine(rest)) lines.push_back(*line);
  return lines;
}

TEST(LinesTest, ReadsLinesWithAndWithoutAFinalNewline) {
  EXPECT_EQ(LinesOf(""), Lines{});
  EXPECT_EQ(LinesOf("a"), Lines{"a"});
  EXPECT_EQ(LinesOf("a\n"), Lines{"a"});
  EXPECT_EQ(LinesOf("\na\n\nb"), (Lines{"", "a", "", "b"}));
}

}  // namespace
}  // namespace spillway::base
