#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace spillway::base {
namespace {

std::uint64_t Of(std::string_view text, std::uint64_t seed = 0) {
  return Checksum64(text.data(), text.size(), seed);
}

// The values of the reference implementation.
TEST(ChecksumTest, IsXxh64) {
  EXPECT_EQ(Of(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(Of("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(Of("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(Of("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

TEST(ChecksumTest, EveryByteAndTheSeedCount) {
  std::vector<std::byte> bytes(100, std::byte{7});
  const std::uint64_t sum = Checksum64(bytes.data(), bytes.size(), 3);
  EXPECT_NE(Checksum64(bytes.data(), bytes.size(), 4), sum);
  for (std::byte& byte : bytes) {
    byte ^= std::byte{16};
    EXPECT_NE(Checksum64(bytes.data(), bytes.size(), 3), sum);
    byte ^= std::byte{16};
  }
}

}  // namespace
}  // namespace spillway::base
