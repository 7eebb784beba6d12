#include "interposer/runtime/progress_line.h"

#include <gtest/gtest.h>

#include <string>

#include "base/terminal.h"

namespace spillway::interposer {
namespace {

std::string Line(size_t columns) {
  ProgressLine line(columns);
  line.Add("spillway: %s of %s on the device", "12.00 GiB", "13.00 GiB");
  line.Add("; out %s, back %s", "117.52 GiB", "117.99 GiB");
  line.Add("; wanted %s", "20.00 GiB");
  return line.text();
}

// Regression: on 80 columns the line of 95 wrapped, and each second left a copy.
TEST(ProgressLineTest, IsNarrowerThanTheTerminalAndCutsNoNumber) {
  const std::string whole = Line(SIZE_MAX);
  EXPECT_TRUE(whole.ends_with("; wanted 20.00 GiB")) << whole;
  EXPECT_EQ(Line(80),
            "spillway: 12.00 GiB of 13.00 GiB on the device; out 117.52 GiB, back 117.99 GiB");
  for (size_t columns = 1; columns <= 120; ++columns) {
    const std::string line = Line(columns);
    EXPECT_LT(line.size(), columns);
    EXPECT_TRUE(line.empty() || line.ends_with("device") || line.ends_with(" GiB")) << line;
  }
}

TEST(ProgressLineTest, WhatFollowsALeftOutPartIsLeftOut) {
  ProgressLine line(10);
  line.Add("12345");
  line.Add("1234567");
  line.Add("1");
  EXPECT_STREQ(line.text(), "12345");
}

TEST(ProgressLineTest, WhatIsNoTerminalHasNoLimit) {
  EXPECT_EQ(base::TerminalColumns(-1), SIZE_MAX);
}

}  // namespace
}  // namespace spillway::interposer
