// The fuzzer itself: equal seeds give equal programs, with the waits that CUDA's rules demand, no
// fewer and no more.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fuzz/differential/choose.h"
#include "tests/fuzz/differential/feature.h"
#include "tests/fuzz/differential/generate.h"
#include "tests/fuzz/differential/limits.h"
#include "tests/fuzz/differential/order.h"
#include "tests/fuzz/differential/repeat.h"
#include "tests/fuzz/differential/world.h"

namespace spillway::fuzz {
namespace {

constexpr int kFirstStream = kFirstCreatedStream;
constexpr int kSecondStream = kFirstCreatedStream + 1;

Operation CreateStream(int stream, bool blocking) {
  return {.kind = Kind::kStreamCreate, .stream = stream, .salt = blocking ? 0u : 1u};
}
Operation AllocateBuffer(int buffer) {
  return {.kind = Kind::kAlloc, .buffer = buffer, .bytes = 4096, .cuts_bytes = {0, 1024}};
}
Operation WriteOn(int stream, int buffer) {
  return {.kind = Kind::kKernel, .stream = stream, .out = {buffer, 0, 4096}};
}
Operation ReadOn(int stream, int buffer, int into) {
  return {
      .kind = Kind::kKernel, .stream = stream, .out = {into, 0, 4096}, .in = {{buffer, 0, 4096}}};
}
Operation FreeBuffer(int buffer, FreeForm form) {
  return {.kind = Kind::kFree,
          .form = static_cast<std::uint8_t>(form),
          .stream = kSecondStream,
          .buffer = buffer};
}

int CountInserted(const std::vector<Operation>& program) {
  return static_cast<int>(Complete(program, std::nullopt).size() - program.size());
}

std::vector<Operation> Opening(bool blocking) {
  return {CreateStream(kFirstStream, blocking), CreateStream(kSecondStream, blocking),
          AllocateBuffer(0), AllocateBuffer(1)};
}

std::vector<Operation> With(std::vector<Operation> program, std::vector<Operation> more) {
  program.insert(program.end(), more.begin(), more.end());
  return program;
}

// For a program of one host thread.
std::uint64_t MostInSecondContextBytes(const std::vector<Operation>& program) {
  std::uint64_t most_bytes = 0;
  World world;
  for (const Operation& operation : program) {
    world.Apply(operation);
    std::uint64_t bytes = 0;
    for (const auto& [id, buffer] : world.Buffers()) {
      const bool counts = buffer.live && !buffer.InHostMemory() && buffer.thread == 1;
      if (counts) bytes += RoundUp(buffer.bytes, kChunkBytes);
    }
    most_bytes = std::max(most_bytes, bytes);
  }
  return most_bytes;
}

TEST(ProgramTest, IsTheSameForTheSameSeed) {
  const std::vector<Operation> once = Generate(7, {.hosts = 2});
  const std::vector<Operation> again = Generate(7, {.hosts = 2});

  ASSERT_EQ(once.size(), again.size());
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(ToText(once[i]), ToText(again[i]));
}

TEST(ProgramTest, StaysBelowItsLimitOfLiveMemory) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_LE(Measure(Generate(seed, {})).peak_bytes, (220ull << 20) + (48ull << 20))
        << "seed " << seed;
  }
}

// Regression: the opening's buffers stay where the program had freed them. One that held 32 MiB in
// the second context was refused a launch that needed 30 more, of a budget of 64.
TEST(ProgramTest, RepeatedStaysBelowItsLimits) {
  const Shape shape{.hosts = 1, .contexts = 2};
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<Operation> program = Repeat(Generate(seed, shape), shape, {.iterations = 3});
    EXPECT_LE(MostInSecondContextBytes(program), kSecondContextBytes) << "seed " << seed;
  }
}

// Regression: a texture's memory did not count. A program that held 20 MiB in the second context
// was refused a launch that needed 32 more, of a budget of 64 (seed 1254).
TEST(ProgramTest, StaysBelowItsLimitsWithFeatures) {
  Shape shape{.hosts = 1, .contexts = 2};
  for (std::size_t i = 0; i < AllFeatures().size(); ++i) shape.features.insert(static_cast<int>(i));
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    EXPECT_LE(MostInSecondContextBytes(Generate(seed, shape)), kSecondContextBytes)
        << "seed " << seed;
}

TEST(ProgramTest, FeaturesOpenBeforeAnythingIsAllocated) {
  const Shape shape{.hosts = 2, .features = {FeatureNamed("early")}};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Operation> program = Generate(seed, shape);
    const auto takes_device_memory = [](const Operation& operation) {
      return operation.kind == Kind::kAlloc &&
             !IsHostMemory(static_cast<AllocForm>(operation.form));
    };
    const auto is_made = [](const Operation& operation) {
      return operation.object_use == ObjectUse::kMake;
    };
    const auto first = std::find_if(program.begin(), program.end(), takes_device_memory);
    EXPECT_GE(std::count_if(program.begin(), first, is_made), 2) << "seed " << seed;
  }
}

TEST(ProgramTest, DropsWhatNeedsADroppedAllocation) {
  std::vector<Operation> program =
      With(Opening(false), {WriteOn(kFirstStream, 0), ReadOn(kFirstStream, 0, 1)});
  for (std::size_t i = 0; i < program.size(); ++i) program[i].origin = static_cast<int>(i);

  const std::vector<Operation> kept = Keep(program, {0, 1, 3, 4, 5});

  EXPECT_EQ(kept.size(), 3u);
}

TEST(OrderTest, NeedsNoWaitWithinAStream) {
  EXPECT_EQ(
      CountInserted(With(Opening(false), {WriteOn(kFirstStream, 0), ReadOn(kFirstStream, 0, 1)})),
      0);
}

TEST(OrderTest, InsertsAWaitBetweenStreams) {
  EXPECT_GT(
      CountInserted(With(Opening(false), {WriteOn(kFirstStream, 0), ReadOn(kSecondStream, 0, 1)})),
      0);
}

TEST(OrderTest, InsertsAWaitBeforeOverwritingWhatAnotherStreamReads) {
  const std::vector<Operation> program =
      With(Opening(false),
           {WriteOn(kFirstStream, 0), ReadOn(kFirstStream, 0, 1), WriteOn(kSecondStream, 0)});

  EXPECT_GT(CountInserted(program), 0);
}

TEST(OrderTest, LetsPartsOfABufferBeWrittenAtTheSameTime) {
  Operation front = WriteOn(kFirstStream, 0);
  Operation back = WriteOn(kSecondStream, 0);
  front.out = {0, 0, 1024};
  back.out = {0, 1024, 3072};

  EXPECT_EQ(CountInserted(With(Opening(false), {front, back})), 0);
}

TEST(OrderTest, ReliesOnTheLegacyStreamForBlockingStreamsOnly) {
  const std::vector<Operation> uses = {WriteOn(kFirstStream, 0), ReadOn(kLegacyStream, 0, 1)};

  EXPECT_EQ(CountInserted(With(Opening(true), uses)), 0);
  EXPECT_GT(CountInserted(With(Opening(false), uses)), 0);
}

TEST(OrderTest, LetsMemFreeComeAtAnyTimeButFreeAsyncInOrder) {
  const std::vector<Operation> write = With(Opening(false), {WriteOn(kFirstStream, 0)});

  EXPECT_EQ(CountInserted(With(write, {FreeBuffer(0, FreeForm::kMemFree)})), 0);
  EXPECT_GT(CountInserted(With(write, {FreeBuffer(0, FreeForm::kFreeAsync)})), 0);
}

TEST(OrderTest, LeavesTheOmittedKindOut) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<Operation> program = Generate(seed, {});
    const auto is_wait = [](const Operation& operation) {
      return operation.kind == Kind::kEventWait;
    };
    const std::vector<Operation> completed = Complete(program, Kind::kEventWait);

    EXPECT_EQ(std::count_if(completed.begin(), completed.end(), is_wait),
              std::count_if(program.begin(), program.end(), is_wait));
  }
}

}  // namespace
}  // namespace spillway::fuzz
