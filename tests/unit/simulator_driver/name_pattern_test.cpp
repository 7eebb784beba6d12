#include "simulator/driver/device/name_pattern.h"

#include <gtest/gtest.h>

namespace spillway::simulator {
namespace {

std::optional<TypeSizes> Match(const char* pattern, std::string_view name) {
  return NamePattern(pattern).Match(name);
}

bool Matches(const char* pattern, std::string_view name) {
  return Match(pattern, name).has_value();
}

TEST(NamePatternTest, StarsAndQuestionMarksStandForText) {
  EXPECT_TRUE(Matches("*", ""));
  EXPECT_TRUE(Matches("void *::fill<*>(*)", "void at::native::fill<float>(float*)"));
  EXPECT_TRUE(Matches("a?c", "abc"));
  EXPECT_FALSE(Matches("a?c", "ac"));
  EXPECT_FALSE(Matches("fill", "void fill"));
  EXPECT_FALSE(Matches("fill", "filled"));
}

TEST(NamePatternTest, SetsStandForOneCharacter) {
  EXPECT_TRUE(Matches("kernel[248]", "kernel4"));
  EXPECT_FALSE(Matches("kernel[248]", "kernel3"));
  EXPECT_TRUE(Matches("kernel[1-3a]", "kernel3"));
  EXPECT_TRUE(Matches("[!]x]", "a"));
  EXPECT_FALSE(Matches("[!]x]", "]"));
  EXPECT_TRUE(Matches("char [[]2]", "char [2]"));
  EXPECT_TRUE(Matches("no[end", "no[end"));
}

TEST(NamePatternTest, ChoicesStandForOneOfTheirTexts) {
  EXPECT_TRUE(Matches("{Add|Mul}Functor", "MulFunctor"));
  EXPECT_TRUE(Matches("x{|es}!", "x!"));
  EXPECT_TRUE(Matches("{a|ab}c", "abc"));
  EXPECT_FALSE(Matches("{Add|Mul}Functor", "DivFunctor"));
}

TEST(NamePatternTest, TypesAreCapturedWithTheirSizes) {
  EXPECT_EQ(Match("add<{T}>", "add<float>"), (TypeSizes{{"T", 4}}));
  EXPECT_EQ(Match("add<*, {T}>", "add<int, c10::complex<float>>"), (TypeSizes{{"T", 8}}));
  EXPECT_EQ(Match("add<{T}>", "add<long long>"), (TypeSizes{{"T", 8}}));
  EXPECT_EQ(Match("cast<{In}, {Out}>", "cast<float, c10::Half>"),
            (TypeSizes{{"In", 4}, {"Out", 2}}));
  EXPECT_FALSE(Matches("add<{T}>", "add<Vector>"));
}

TEST(NamePatternTest, ATypeThatComesAgainIsTheSame) {
  EXPECT_TRUE(Matches("add<{T}, {T}>", "add<int, int>"));
  EXPECT_FALSE(Matches("add<{T}, {T}>", "add<int, float>"));
  EXPECT_EQ(Match("*<{T}>*<{T}>", "a<int>b<float>c<float>"), (TypeSizes{{"T", 4}}));
}

TEST(NamePatternTest, BracesOfOtherKindsStandForThemselves) {
  EXPECT_TRUE(Matches("*{lambda(float)#1}*", "f()::{lambda(float)#1}::g"));
  EXPECT_EQ(Match("*{lambda({T})#1}*", "f()::{lambda(double)#1}::g"), (TypeSizes{{"T", 8}}));
  EXPECT_TRUE(Matches("open{", "open{"));
}

TEST(NamePatternTest, ManyStarsOnALongNameTakeNoTime) {
  const std::string name(3000, 'a');
  EXPECT_FALSE(Matches("*a*a*a*a*a*a*a*a*a*b", name));
}

TEST(NamePatternTest, CapturesAreKnown) {
  EXPECT_TRUE(NamePattern("add<{T}>").Captures("T"));
  EXPECT_FALSE(NamePattern("add<{T}>").Captures("In"));
}

}  // namespace
}  // namespace spillway::simulator
