// CMakeLists.txt runs these tests with the kernel's body for the CPU, with the kernel as
// tools/simkernels compiles it, and on sparse memory.
#include "interposer/execute/residency/fingerprints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/prng.h"
#include "interposer/driver/driver_api.h"
#include "tests/support/paths.h"
#include "tests/unit/fingerprints/reference.h"

namespace spillway::interposer {
namespace {

using driver::Driver;
using Bytes = std::vector<unsigned char>;
using Piece = Fingerprints::Piece;
using Slot = Fingerprints::Slot;

constexpr std::size_t kMiB = 1 << 20;

struct InAnyOrder {
  bool operator()(const Fingerprint& a, const Fingerprint& b) const {
    return std::memcmp(&a, &b, sizeof a) < 0;
  }
};
using FingerprintSet = std::set<Fingerprint, InAnyOrder>;

// Odd steps, as in every key.
constexpr Fingerprints::Key kKey = {{{11, 0x9e3779b97f4a7c15, 13, 0xd1b54a32d192ed03, 17},
                                     {19, 0x8cb92ba72f3d8dd7, 23, 0xabc98388fb8fac03, 29}}};

Bytes RandomBytes(std::size_t count, std::uint64_t seed) {
  base::Prng random(seed);
  Bytes bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.Next());
  return bytes;
}

class FingerprintsTest : public testing::Test {
 protected:
  static constexpr std::size_t kRoomBytes = 8 * kMiB;
  static constexpr std::size_t kAccumulatorBytes = 64 << 10;

  void SetUp() override {
    setenv("SPILLWAY_DRIVER", test::SimulatedDriver().c_str(), 0);
    Driver().cuInit(0);
    ASSERT_EQ(Driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    Driver().cuCtxSetCurrent(context_);
    ASSERT_EQ(Driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    room_ = Allocated(kRoomBytes);
    ASSERT_TRUE(fingerprints_.Prepare(Allocated(kAccumulatorBytes), kAccumulatorBytes));
  }
  void TearDown() override {
    Driver().cuCtxSynchronize();
    fingerprints_.Release();
    for (const CUdeviceptr address : allocated_) Driver().cuMemFree_v2(address);
    Driver().cuStreamDestroy_v2(stream_);
    Driver().cuDevicePrimaryCtxRelease_v2(0);
  }

  CUdeviceptr Allocated(std::size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(Driver().cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    EXPECT_EQ(Driver().cuMemsetD8_v2(address, 0xee, bytes), CUDA_SUCCESS);
    allocated_.push_back(address);
    return address;
  }
  void Put(const Bytes& bytes, std::size_t at) {
    ASSERT_LE(at + bytes.size(), kRoomBytes);
    if (bytes.empty()) return;
    ASSERT_EQ(Driver().cuMemcpyHtoD_v2(room_ + at, bytes.data(), bytes.size()), CUDA_SUCCESS);
  }
  Fingerprint OfDevice(CUdeviceptr begin, std::size_t bytes) {
    const Slot slot = fingerprints_.TakeSlot();
    const Piece piece = {begin, bytes, slot};
    EXPECT_TRUE(fingerprints_.Compute(stream_, {&piece, 1}));
    EXPECT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
    fingerprints_.GiveSlot(slot);
    return fingerprints_.Read(slot);
  }
  // By the device, after a comparison with the reference.
  Fingerprint Of(const Bytes& bytes, std::size_t at = 0) {
    Put(bytes, at);
    const Fingerprint fingerprint = OfDevice(room_ + at, bytes.size());
    EXPECT_EQ(fingerprint, test::ReferenceFingerprint(kKey, bytes))
        << bytes.size() << " bytes at " << at;
    return fingerprint;
  }

  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> allocated_;
  CUdeviceptr room_ = 0;
  Fingerprints fingerprints_{kKey};
};

TEST_F(FingerprintsTest, IsThatOfTheDefinitionForAnyLengthAndAlignment) {
  for (const std::size_t bytes : {0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 4095, 4096, 4097, 70000}) {
    for (std::size_t at = 0; at < 17; ++at) Of(RandomBytes(bytes, bytes + 1), at);
  }
  Of(RandomBytes(5 * kMiB + 3, 7), 1);
}

TEST_F(FingerprintsTest, EqualBytesAreEqualAtDifferentAlignments) {
  const Bytes bytes = RandomBytes(9999, 3);
  const Fingerprint first = Of(bytes, 0);
  for (const std::size_t at : {1, 4, 8, 15, 16, 4099}) EXPECT_EQ(Of(bytes, at), first) << at;
}

TEST_F(FingerprintsTest, OneBitAnywhereDiffers) {
  Bytes bytes = RandomBytes(70003, 5);
  for (const std::size_t at : {0, 3}) {
    const Fingerprint first = Of(bytes, at);
    for (const std::size_t byte : {0, 1, 15, 16, 35001, 65535, 65536, 69999, 70002}) {
      for (const int bit : {0, 7}) {
        bytes[byte] ^= static_cast<unsigned char>(1 << bit);
        const Fingerprint changed = Of(bytes, at);
        EXPECT_NE(changed.words[0], first.words[0]) << byte << " bit " << bit;
        EXPECT_NE(changed.words[1], first.words[1]) << byte << " bit " << bit;
        bytes[byte] ^= static_cast<unsigned char>(1 << bit);
      }
    }
  }
}

// The bytes beside a piece lie in its first and last aligned word.
TEST_F(FingerprintsTest, NeighbouringBytesDoNotCount) {
  const Bytes bytes = RandomBytes(101, 8);
  const Fingerprint first = Of(bytes, 5);
  Put(Bytes(5, 0x77), 0);
  Put(Bytes(22, 0x77), 106);
  EXPECT_EQ(OfDevice(room_ + 5, 101), first);
}

TEST_F(FingerprintsTest, LengthCounts) {
  FingerprintSet all;
  for (std::size_t bytes = 0; bytes < 40; ++bytes) {
    all.insert(Of(Bytes(bytes, 0)));  // zeros alone
    Bytes one(bytes + 1, 0);          // the same word with zeros behind it
    one[0] = 1;
    all.insert(Of(one));
  }
  EXPECT_EQ(all.size(), 80u);
}

TEST_F(FingerprintsTest, OrderCounts) {
  const Bytes bytes = RandomBytes(64, 9);
  const Fingerprint first = Of(bytes);
  Bytes swapped_words = bytes, swapped_halves = bytes, shifted = bytes;
  std::swap_ranges(swapped_words.begin(), swapped_words.begin() + 16, swapped_words.begin() + 32);
  std::swap_ranges(swapped_halves.begin(), swapped_halves.begin() + 8, swapped_halves.begin() + 8);
  std::rotate(shifted.begin(), shifted.begin() + 16, shifted.end());
  const FingerprintSet all = {first, Of(swapped_words), Of(swapped_halves), Of(shifted)};
  EXPECT_EQ(all.size(), 4u);
}

TEST_F(FingerprintsTest, AnotherKeyDiffers) {
  const Bytes bytes = RandomBytes(100, 4);
  const Fingerprint first = Of(bytes);
  Fingerprints others[2];
  for (Fingerprints& other : others) {
    ASSERT_TRUE(other.Prepare(Allocated(1024), 1024));
    const Piece piece = {room_, 100, other.TakeSlot()};
    ASSERT_TRUE(other.Compute(stream_, {&piece, 1}));
    Driver().cuStreamSynchronize(stream_);
    EXPECT_NE(other.Read(piece.to), first);
  }
  const Fingerprints::Key zeros = {{{0, 1, 0, 1, 0}, {0, 1, 0, 1, 0}}};
  EXPECT_NE(others[0].Read(0), test::ReferenceFingerprint(zeros, bytes)) << "there is no key";
  // The key of the process serves all its devices.
  EXPECT_EQ(others[0].Read(0), others[1].Read(0));
  for (Fingerprints& other : others) other.Release();
}

TEST_F(FingerprintsTest, ManyPiecesOfAnySizeShareALaunch) {
  std::vector<Piece> pieces;
  std::vector<Bytes> contents;
  for (std::size_t i = 0, at = 0; i < 300; ++i) {
    contents.push_back(RandomBytes(i % 100 == 0 ? 200000 + i : i * 3, i));
    Put(contents.back(), at);
    pieces.push_back({room_ + at, contents.back().size(), fingerprints_.TakeSlot()});
    at += contents.back().size();
  }
  ASSERT_TRUE(fingerprints_.Compute(stream_, pieces));
  Driver().cuStreamSynchronize(stream_);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(fingerprints_.Read(pieces[i].to), test::ReferenceFingerprint(kKey, contents[i])) << i;
    EXPECT_FALSE(fingerprints_.Differs(pieces[i].to));
  }
  EXPECT_EQ(fingerprints_.Mismatches(), 0u);
}

TEST_F(FingerprintsTest, ComparisonsAreMadeOnTheDeviceAndCounted) {
  const Slot before = fingerprints_.TakeSlot(), after = fingerprints_.TakeSlot();
  const Piece first = {room_, kMiB, before}, again = {room_, kMiB, after, before};
  const auto compare = [&] {
    EXPECT_TRUE(fingerprints_.Compute(stream_, {&again, 1}));
    Driver().cuStreamSynchronize(stream_);
    return fingerprints_.Differs(after);
  };
  ASSERT_TRUE(fingerprints_.Compute(stream_, {&first, 1}));
  EXPECT_FALSE(compare());
  EXPECT_EQ(fingerprints_.Mismatches(), 0u);

  Driver().cuMemsetD8_v2(room_ + kMiB - 1, 1, 1);
  EXPECT_TRUE(compare());
  EXPECT_EQ(fingerprints_.Mismatches(), 1u);

  Driver().cuMemsetD8_v2(room_ + kMiB - 1, 0xee, 1);
  EXPECT_FALSE(compare());
  EXPECT_EQ(fingerprints_.Mismatches(), 1u) << "sticky";
}

TEST_F(FingerprintsTest, SlotMayBeComparedWithWhatItHeld) {
  const Slot slot = fingerprints_.TakeSlot();
  const Piece first = {room_, 100, slot}, same = {room_, 100, slot, slot};
  const Piece other = {room_, 99, slot, slot};
  for (const Piece* piece : {&first, &same, &other})
    ASSERT_TRUE(fingerprints_.Compute(stream_, {piece, 1}));
  Driver().cuStreamSynchronize(stream_);
  EXPECT_TRUE(fingerprints_.Differs(slot));
  EXPECT_EQ(fingerprints_.Mismatches(), 1u);
}

TEST_F(FingerprintsTest, StreamsComputeAtOnce) {
  CUstream other = nullptr;
  ASSERT_EQ(Driver().cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const Bytes bytes = RandomBytes(3 * kMiB, 6);
  Put(bytes, 0);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < 20; ++i) {
    pieces.push_back({room_ + i, kMiB + i, fingerprints_.TakeSlot()});
    ASSERT_TRUE(fingerprints_.Compute(i % 2 == 0 ? stream_ : other, {&pieces.back(), 1}));
  }
  Driver().cuCtxSynchronize();
  for (std::size_t i = 0; i < pieces.size(); ++i)
    EXPECT_EQ(fingerprints_.Read(pieces[i].to),
              test::ReferenceFingerprint(kKey, std::span(bytes).subspan(i, kMiB + i)));
  Driver().cuStreamDestroy_v2(other);
}

// In the compute mode `tags` the body for the CPU skips memory that was never written. A stretch of
// written pages crosses 32 MiB, up to which the simulated driver asks at once for pages.
TEST_F(FingerprintsTest, MemoryThatWasNeverWrittenCountsAsZeros) {
  constexpr std::size_t kBytes = 40 * kMiB - 5;
  CUdeviceptr address = 0;
  ASSERT_EQ(Driver().cuMemAlloc_v2(&address, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(Driver().cuMemsetD8_v2(address, 0, kBytes), CUDA_SUCCESS);
  Bytes bytes(kBytes, 0);
  for (const std::size_t at : {std::size_t{4099}, 10 * kMiB, 32 * kMiB - 6000, kBytes - 9001}) {
    const Bytes some = RandomBytes(9001, at);
    std::copy(some.begin(), some.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    ASSERT_EQ(Driver().cuMemcpyHtoD_v2(address + at, some.data(), some.size()), CUDA_SUCCESS);
  }
  for (const std::size_t begin : {0, 3}) {
    const auto part = std::span(bytes).subspan(begin);
    EXPECT_EQ(OfDevice(address + begin, part.size()), test::ReferenceFingerprint(kKey, part));
  }
  Driver().cuMemFree_v2(address);
}

TEST_F(FingerprintsTest, MemoryThatIsNotMappedIsAnIllegalAddress) {
  CUdeviceptr nothing = 0;
  ASSERT_EQ(Driver().cuMemAddressReserve(&nothing, 64 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  const Piece piece = {nothing, 64 * kMiB, fingerprints_.TakeSlot()};
  ASSERT_TRUE(fingerprints_.Compute(stream_, {&piece, 1}));
  EXPECT_EQ(Driver().cuStreamSynchronize(stream_), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(FingerprintsTest, GivesAsManySlotsAsTheAccumulatorsHold) {
  Fingerprints small(kKey);
  ASSERT_TRUE(small.Prepare(Allocated(256), 256));
  std::set<Slot> slots;
  for (int i = 0; i < 3; ++i) slots.insert(small.TakeSlot());
  EXPECT_EQ(slots.size(), 3u);
  EXPECT_FALSE(slots.contains(Fingerprints::kNoSlot));
  EXPECT_EQ(small.TakeSlot(), Fingerprints::kNoSlot);
  small.GiveSlot(1);
  EXPECT_EQ(small.TakeSlot(), 1u);
  small.Release();
}

TEST_F(FingerprintsTest, CaptureOfAnotherStreamGoesOn) {
  CUstream captured = nullptr;
  CUgraph graph = nullptr;
  Fingerprints fresh(kKey);
  const CUdeviceptr accumulators = Allocated(1024);
  ASSERT_EQ(Driver().cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(Driver().cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  ASSERT_TRUE(fresh.Prepare(accumulators, 1024));
  const Piece piece = {room_, 100, fresh.TakeSlot()};
  EXPECT_TRUE(fresh.Compute(stream_, {&piece, 1}));
  EXPECT_EQ(Driver().cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
  Driver().cuStreamSynchronize(stream_);
  EXPECT_EQ(fresh.Read(piece.to), OfDevice(room_, 100));
  Driver().cuGraphDestroy(graph);
  Driver().cuStreamDestroy_v2(captured);
  fresh.Release();
}

TEST_F(FingerprintsTest, IsNotReadyWithoutADriverThatTakesIt) {
  Fingerprints none;
  EXPECT_FALSE(none.is_ready());
  EXPECT_FALSE(none.Prepare(room_, 64)) << "no room for a slot";
  CUcontext context = nullptr;
  Driver().cuCtxPopCurrent_v2(&context);
  EXPECT_FALSE(none.Prepare(room_, 4096)) << "no context";
  Driver().cuCtxSetCurrent(context_);
  EXPECT_FALSE(none.is_ready());
  EXPECT_TRUE(fingerprints_.is_ready());
}

}  // namespace
}  // namespace spillway::interposer
