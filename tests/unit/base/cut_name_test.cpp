#include "base/cut_name.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

TEST(CutNameTest, WhatFitsStaysWhole) {
  EXPECT_EQ(CutName("local-4711", 10), "local-4711");
  EXPECT_EQ(CutName("", 0), "");
}

TEST(CutNameTest, KeepsTheEndWhereNamesDiffer) {
  EXPECT_EQ(CutName("container-0123456789ab", 12), "~123456789ab");
  EXPECT_EQ(CutName("local-4711", 9), "~cal-4711");
}

TEST(CutNameTest, NoWidthIsTooSmall) {
  EXPECT_EQ(CutName("local-4711", 1), "~");
  EXPECT_EQ(CutName("local-4711", 0), "");
}

TEST(CutNameTest, SplitsNoCharacter) {
  EXPECT_EQ(CutName("job-\u00e4\u00f6", 5), "~\u00e4\u00f6");
  EXPECT_EQ(CutName("job-\u00e4\u00f6", 4), "~\u00f6");
  EXPECT_EQ(CutName("job-\u00e4\u00f6", 2), "~");
}

}  // namespace
}  // namespace spillway::base
