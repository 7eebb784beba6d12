// A fingerprint decides whether host copies of presumed read-only memory are still the content.
// (execute/residency/content_checks.h)
#include "tests/unit/interposer/effects_job.h"

namespace spillway::interposer {
namespace {

class KnownByContentTest : public EffectsTest {
 protected:
  static constexpr size_t kOthers = 7;

  // The input, which `kernel` is known to read, is resident again, and has a host copy.
  void Know(const char* kernel) {
    MakeJob((kOthers + 2) * kBytes + kGranules);
    for (CUdeviceptr& other : others_) Set(other = Allocated(), 1);
    Learn(kernel);
    EvictInput();
    Launch(kernel, {settling_, input_});
  }
  void Learn(const char* kernel) {
    Settle();
    const std::uint64_t token = Launch(kernel, {settling_, input_});
    Settle();
    ASSERT_EQ(RolesOf(token), "r");
  }
  // Uses all others and a new one, so that the input leaves as the least recently used one.
  void EvictInput() {
    const CUdeviceptr more[] = {Allocated(), Allocated()};
    for (const CUdeviceptr other : others_) Set(other, 1);
    for (const CUdeviceptr each : more) Set(each, 2);
    Driver().cuStreamSynchronize(stream_);
    for (const CUdeviceptr each : more) Free(each);
    ASSERT_TRUE(job_->view().IsEvicted(input_));
  }

  static constexpr size_t kGranules = 3 * kGranuleBytes;
  CUdeviceptr others_[kOthers] = {};
};

TEST_F(KnownByContentTest, UnchangedContentIsNotCopied) {
  Know("sum");
  const Counters before = Count();
  EvictInput();
  EXPECT_EQ(Count().clean_by_content_bytes - before.clean_by_content_bytes, kBytes);
  EXPECT_EQ(Count().changed_by_content_bytes, 0u);
  EXPECT_TRUE(AllAre(Read(input_), 5));
}

TEST_F(KnownByContentTest, ALiarsWriteIsCopied) {
  Know("sum");
  hidden.lies = true;
  Launch("sum", {settling_, input_});
  EvictInput();
  EXPECT_EQ(Count().changed_by_content_bytes, kBytes);

  std::vector<int> values = Read(input_);

  EXPECT_EQ(values[7], 97);
  values[7] = 5;
  EXPECT_TRUE(AllAre(values, 5));
}

// The content of a host copy made while a liar wrote is known, too.
TEST_F(KnownByContentTest, WhatALiarWroteIsFoundUnchangedLater) {
  Know("sum");
  hidden.lies = true;
  Launch("sum", {settling_, input_});
  EvictInput();
  Launch("sum", {settling_, input_});
  const Counters before = Count();
  EvictInput();
  EXPECT_EQ(Count().clean_by_content_bytes - before.clean_by_content_bytes, kBytes);
  EXPECT_EQ(Read(input_)[7], 97);
}

}  // namespace
}  // namespace spillway::interposer
