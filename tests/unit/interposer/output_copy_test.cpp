// An output's earlier bytes, kept on the host while its operation is proved.
#include "interposer/execute/output_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace spillway::interposer {
namespace {

constexpr size_t kBytes = 100 * 4096 + 17;

TEST(OutputCopyTest, ReportsWhetherAPieceIsEqual) {
  OutputCopy copy;
  ASSERT_TRUE(copy.Take(kBytes));
  std::vector<std::byte> piece(kBytes - 4096, std::byte{3});
  copy.Keep(4096, piece.data(), piece.size());

  EXPECT_TRUE(copy.Equals(4096, piece.data(), piece.size()));
  EXPECT_EQ(copy.at(4095)[0], std::byte{0});
  for (const size_t at : {size_t{0}, piece.size() / 2, piece.size() - 1}) {
    std::vector<std::byte> other = piece;
    other[at] = std::byte{4};
    EXPECT_FALSE(copy.Equals(4096, other.data(), other.size())) << at;
  }
}

TEST(OutputCopyTest, KeepsEveryByteOfAPageThatIsNotAllZero) {
  OutputCopy copy;
  ASSERT_TRUE(copy.Take(kBytes));
  for (const size_t at : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, kBytes - 1}) {
    std::vector<std::byte> piece(kBytes);
    piece[at] = std::byte{1};
    copy.Keep(0, piece.data(), piece.size());
    EXPECT_EQ(copy.at(at)[0], std::byte{1}) << at;
  }
}

TEST(OutputCopyTest, ZeroPagesTakeNoMemory) {
  constexpr size_t kLarge = size_t{64} << 20;
  OutputCopy copy;
  ASSERT_TRUE(copy.Take(kLarge));
  std::vector<std::byte> piece(kLarge);
  piece[kLarge / 2] = std::byte{1};
  copy.Keep(0, piece.data(), piece.size());

  const auto page = static_cast<size_t>(getpagesize());
  std::vector<unsigned char> is_there(kLarge / page);
  ASSERT_EQ(mincore(const_cast<std::byte*>(copy.at(0)), kLarge, is_there.data()), 0);
  const auto there =
      std::count_if(is_there.begin(), is_there.end(), [](unsigned char page) { return page & 1; });
  EXPECT_EQ(there, 1);
  EXPECT_TRUE(copy.Equals(0, piece.data(), piece.size()));
  for (const size_t at : {size_t{0}, kLarge / 2 - 1, kLarge - 1}) {
    piece[at] = std::byte{1};
    EXPECT_FALSE(copy.Equals(0, piece.data(), piece.size())) << at;
    piece[at] = std::byte{0};
  }
}

TEST(OutputCopyTest, IsNotTakenWithoutEnoughHostMemory) {
  OutputCopy copy;
  EXPECT_FALSE(copy.Take(size_t{1} << 50));
}

}  // namespace
}  // namespace spillway::interposer
