#include "base/size_text.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

std::uint64_t Bytes(const std::string& text) {
  const auto size = ParseSize(text);
  EXPECT_TRUE(size.has_value()) << text;
  return size ? size->bytes : 0;
}

TEST(SizeTest, BinaryUnitsArePowersOf1024) {
  EXPECT_EQ(Bytes("8GiB"), 8589934592U);
  EXPECT_EQ(Bytes("8192MiB"), 8589934592U);
  EXPECT_EQ(Bytes("1KiB"), 1024U);
  EXPECT_EQ(Bytes("2TiB"), 2199023255552U);
}

TEST(SizeTest, BareLettersAreBinary) {
  EXPECT_EQ(Bytes("8G"), 8589934592U);
  EXPECT_EQ(Bytes("3k"), 3072U);
  EXPECT_EQ(Bytes("1M"), 1048576U);
}

TEST(SizeTest, DecimalUnitsArePowersOf1000) {
  EXPECT_EQ(Bytes("500MB"), 500000000U);
  EXPECT_EQ(Bytes("8GB"), 8000000000U);
  EXPECT_EQ(Bytes("1kB"), 1000U);
  EXPECT_EQ(Bytes("1TB"), 1000000000000U);
}

TEST(SizeTest, PlainNumbersAndBAreBytes) {
  EXPECT_EQ(Bytes("8589934592"), 8589934592U);
  EXPECT_EQ(Bytes("17B"), 17U);
}

TEST(SizeTest, CaseAndOneSpaceDoNotMatter) {
  EXPECT_EQ(Bytes("8gib"), 8589934592U);
  EXPECT_EQ(Bytes("8 GiB"), 8589934592U);
}

TEST(SizeTest, FractionsAreExactAndTruncatedToBytes) {
  EXPECT_EQ(Bytes("1.5GiB"), 1610612736U);
  EXPECT_EQ(Bytes("0.1GB"), 100000000U);
  EXPECT_EQ(Bytes("1.9"), 1U);
  EXPECT_EQ(Bytes("0.000000001GiB"), 1U);
}

TEST(SizeTest, RefusesTextsThatAreNoSize) {
  for (const char* text :
       {"", "GiB", "8XB", "-1", "+1", "1e9", "8GiBB", " 8GiB", "8GiB ", "8  GiB", "0x10", "1..5GiB",
        ".5GiB", "1.GiB", "25%%", "25%device", "% peak", "1.0000000001GiB", "eight"}) {
    EXPECT_FALSE(ParseSize(text).has_value()) << "'" << text << "'";
  }
}

TEST(SizeTest, RefusesOverflow) {
  EXPECT_FALSE(ParseSize("8388608TiB").has_value());
  EXPECT_FALSE(ParseSize("99999999999999999999").has_value());
  EXPECT_FALSE(ParseSize("99999999999999999999999%").has_value());
  EXPECT_EQ(Bytes("8388607TiB"), 9223370937343148032U);
}

TEST(SizeTest, PercentagesNameWhatTheyAreOf) {
  const auto of_device = ParseSize("25%");
  const auto of_peak = ParseSize("12.5%peak");
  ASSERT_TRUE(of_device && of_peak);
  EXPECT_EQ(of_device->kind, SizeKind::kShareOfDevice);
  EXPECT_EQ(of_peak->kind, SizeKind::kShareOfPeak);
  EXPECT_EQ(ResolveSize(*of_device, 1000), 250U);
  EXPECT_EQ(ResolveSize(*of_peak, 1000), 125U);
}

TEST(SizeTest, PercentagesOfLargeDevicesDoNotOverflow) {
  const auto size = ParseSize("100%");
  ASSERT_TRUE(size);
  EXPECT_EQ(ResolveSize(*size, 1ULL << 62), 1ULL << 62);
}

TEST(SizeTest, FormatsForPeople) {
  EXPECT_EQ(FormatBytes(0), "0 bytes");
  EXPECT_EQ(FormatBytes(1023), "1023 bytes");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1610612736), "1.5 GiB");
  EXPECT_EQ(FormatBytes(1ULL << 62), "4.0 EiB");
}

TEST(SizeTest, FormatsExactlyWhatItReads) {
  EXPECT_EQ(FormatBytesExactly(0), "0");
  EXPECT_EQ(FormatBytesExactly(4097), "4097");
  EXPECT_EQ(FormatBytesExactly(std::uint64_t{12} << 30), "12GiB");
  EXPECT_EQ(FormatBytesExactly(500'000'000), "500MB");
  EXPECT_EQ(FormatBytesExactly(2000), "2kB");
  for (std::uint64_t bytes : {1ULL, 1536ULL, 3ULL << 40, 7'000'000'000'000ULL, 123'456'789'000ULL})
    EXPECT_EQ(Bytes(FormatBytesExactly(bytes)), bytes);
}

}  // namespace
}  // namespace spillway::base
