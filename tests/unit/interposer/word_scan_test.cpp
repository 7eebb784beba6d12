#include "interposer/ledger/word_scan.h"

#include <gtest/gtest.h>

#include <vector>

namespace spillway::interposer {
namespace {

constexpr CUdeviceptr kAt = 0x7f0000000000;
constexpr WordBounds kBounds{0x7f0001000000, 0x7f0002000000};
constexpr CUdeviceptr kOurs = 0x7f0001234560;

std::vector<CUdeviceptr> PlacesFound(const std::vector<std::byte>& payload, CUdeviceptr at) {
  std::vector<CUdeviceptr> places;
  ScanPayload(payload.data(), payload.size(), at, kBounds, [&](const HeldWord& held) {
    EXPECT_EQ(held.word, kOurs);
    places.push_back(held.at - at);
  });
  return places;
}

void PutWord(std::vector<std::byte>* payload, size_t offset, CUdeviceptr word) {
  std::memcpy(payload->data() + offset, &word, sizeof word);
}

using Places = std::vector<CUdeviceptr>;

TEST(WordScanTest, BoundsAreHalfOpen) {
  EXPECT_TRUE(kBounds.Contain(kBounds.lowest()));
  EXPECT_TRUE(kBounds.Contain(kBounds.highest() - 1));
  EXPECT_FALSE(kBounds.Contain(kBounds.highest()));
  EXPECT_FALSE(kBounds.Contain(kBounds.lowest() - 1));
  EXPECT_FALSE((WordBounds{~CUdeviceptr{0}, 0}).Contain(0));
}

TEST(WordScanTest, FindsAlignedWords) {
  std::vector<std::byte> payload(64);
  PutWord(&payload, 0, kOurs);
  PutWord(&payload, 56, kOurs);

  EXPECT_EQ(PlacesFound(payload, kAt), (Places{0, 56}));
}

TEST(WordScanTest, AlignmentIsThatOfTheDestination) {
  std::vector<std::byte> payload(64);
  PutWord(&payload, 4, kOurs);

  EXPECT_EQ(PlacesFound(payload, kAt), Places{});
  EXPECT_EQ(PlacesFound(payload, kAt + 4), Places{4});
}

TEST(WordScanTest, PayloadShorterThanAWordHoldsNoAddress) {
  EXPECT_EQ(PlacesFound(std::vector<std::byte>(7), kAt), Places{});
  EXPECT_EQ(PlacesFound({}, kAt), Places{});
}

TEST(WordScanTest, PayloadOfUpToAMebibyteIsScannedInFull) {
  std::vector<std::byte> payload(kWholeBytes);
  PutWord(&payload, kWholeBytes / 2 + kScanPageBytes, kOurs);

  EXPECT_EQ(PlacesFound(payload, kAt), Places{kWholeBytes / 2 + kScanPageBytes});
}

TEST(WordScanTest, LargePayloadIsScannedInFullIfASampleFindsAnAddress) {
  std::vector<std::byte> payload(4 * kWholeBytes);
  const size_t looked_at = kWholeBytes, between = kWholeBytes + 5 * kScanPageBytes;
  PutWord(&payload, between, kOurs);
  EXPECT_EQ(PlacesFound(payload, kAt), Places{});

  PutWord(&payload, looked_at, kOurs);

  EXPECT_EQ(PlacesFound(payload, kAt), (Places{looked_at, between}));
}

TEST(WordScanTest, EndOfALargePayloadIsSampled) {
  std::vector<std::byte> payload(2 * kWholeBytes + 1000);
  PutWord(&payload, payload.size() - 8, kOurs);

  EXPECT_EQ(PlacesFound(payload, kAt), Places{payload.size() - 8});
}

}  // namespace
}  // namespace spillway::interposer
