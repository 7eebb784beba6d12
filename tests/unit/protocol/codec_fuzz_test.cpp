// The decoder against hostile bytes: it accepts only frames that the encoder could have made.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/prng.h"
#include "protocol/codec.h"
#include "tests/unit/protocol/samples.h"

namespace spillway::protocol {
namespace {

constexpr int kRounds = 100'000;

uint64_t Seed() {
  const char* seed = std::getenv("SPILLWAY_TEST_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1;
}

// Exactly sized on the heap, so that a sanitizer detects a read beyond the end.
Decoded DecodeCopy(const std::vector<uint8_t>& bytes) {
  return Decode(std::vector<uint8_t>(bytes).data(), bytes.size());
}

bool IsWhatTheEncoderMakes(const std::vector<uint8_t>& bytes, const Message& message) {
  Frame frame = Encode(message);
  // The version in the header of a Hello or Error is the sender's.
  frame[4] = bytes[4];
  frame[5] = bytes[5];
  return std::equal(bytes.begin(), bytes.end(), frame.begin(), frame.end());
}

std::vector<uint8_t> Mutant(const std::vector<Message>& samples, base::Prng& random) {
  const Frame frame = Encode(samples[random.Below(samples.size())]);
  std::vector<uint8_t> bytes(frame.begin(), frame.end());
  for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
    // Most fields lie near the front.
    const size_t at = random.Below(random.Below(2) ? 64 : bytes.size());
    bytes[at] = random.Below(3) ? static_cast<uint8_t>(random.Next())
                                : static_cast<uint8_t>(random.Below(2) ? 0xff : 0);
  }
  if (random.Below(20) == 0) bytes.resize(random.Below(2 * kFrameBytes));
  return bytes;
}

TEST(CodecFuzzTest, MutantsThatAreAcceptedAreWellFormed) {
  base::Prng random(Seed());
  const std::vector<Message> samples = Samples();
  int accepted = 0;

  for (int round = 0; round < kRounds; ++round) {
    const std::vector<uint8_t> bytes = Mutant(samples, random);
    const Decoded decoded = DecodeCopy(bytes);
    ASSERT_EQ(decoded.message.has_value(), decoded.fault == Fault::kNone);
    if (!decoded.message) continue;
    ++accepted;
    ASSERT_TRUE(IsWhatTheEncoderMakes(bytes, *decoded.message))
        << "seed " << Seed() << " round " << round;
  }

  EXPECT_GT(accepted, kRounds / 100) << "the mutants never reach behind the checks";
  EXPECT_LT(accepted, kRounds) << "nothing is ever refused";
}

TEST(CodecFuzzTest, NoiseIsRefused) {
  base::Prng random(Seed());
  for (int round = 0; round < kRounds / 10; ++round) {
    std::vector<uint8_t> bytes(kFrameBytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
    ASSERT_FALSE(DecodeCopy(bytes).message) << "seed " << Seed() << " round " << round;
  }
}

}  // namespace
}  // namespace spillway::protocol
