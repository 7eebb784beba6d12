// The kernels of contract_kernels.cu for the simulated GPU, with a cost for `spin` that lasts about as long as on a GPU.
#include <cstdint>
#include <cstring>
#include <iterator>

#include "simulator/kernels/image.h"

namespace {

using namespace spillway::simulator;
using Word = std::uint32_t;
using Arguments = void* const*;

struct Mixed {
  char tag;
  Word* out;
  short add;
  double scale;
};

Word contract_words[4] = {11, 22, 33, 44};
Word contract_constant = 55;

template <typename T>
T Argument(Arguments arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

std::uint64_t ThreadsPerBlock(const LaunchShape& shape) {
  return std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2];
}

std::uint64_t Threads(const LaunchShape& shape) {
  return ThreadsPerBlock(shape) * shape.grid[0] * shape.grid[1] * shape.grid[2];
}

void FillBody(const LaunchShape&, Arguments arguments) {
  Word* out = Argument<Word*>(arguments, 0);
  const auto count = Argument<std::uint64_t>(arguments, 2);
  for (std::uint64_t i = 0; i < count; ++i) out[i] = Argument<Word>(arguments, 1);
}

void AddBody(const LaunchShape&, Arguments arguments) {
  Word* words = Argument<Word*>(arguments, 0);
  const auto count = Argument<std::uint64_t>(arguments, 2);
  for (std::uint64_t i = 0; i < count; ++i) words[i] += Argument<Word>(arguments, 1);
}

void CopyBody(const LaunchShape&, Arguments arguments) {
  Word* out = Argument<Word*>(arguments, 0);
  const Word* in = Argument<const Word*>(arguments, 1);
  const auto count = Argument<std::uint64_t>(arguments, 2);
  for (std::uint64_t i = 0; i < count; ++i) out[i] = in[i];
}

void ChaseBody(const LaunchShape&, Arguments arguments) {
  **Argument<Word* const*>(arguments, 0) = Argument<Word>(arguments, 1);
}

void SpinBody(const LaunchShape&, Arguments arguments) {
  Word* word = Argument<Word*>(arguments, 1);
  if (word) *word = Argument<Word>(arguments, 2);
}

// One cycle of an H200 (1.98 GHz) takes as long as 2,424 bytes of its memory traffic (4.8 TB/s).
KernelCost SpinCost(const LaunchShape&, Arguments arguments) {
  return {0, static_cast<std::uint64_t>(Argument<std::int64_t>(arguments, 0)) * 2424};
}

void ByValueBody(const LaunchShape&, Arguments arguments) {
  const Mixed mixed = Argument<Mixed>(arguments, 0);
  mixed.out[0] = static_cast<Word>(mixed.tag);
  mixed.out[1] = static_cast<Word>(mixed.add);
  mixed.out[2] = static_cast<Word>(mixed.scale * 10);
  mixed.out[3] = Argument<Word>(arguments, 1);
}

void CountThreadsBody(const LaunchShape& shape, Arguments arguments) {
  *Argument<Word*>(arguments, 0) += static_cast<Word>(Threads(shape));
}

void CoordinatesBody(const LaunchShape& shape, Arguments arguments) {
  Word* out = Argument<Word*>(arguments, 0);
  for (Word index = 0; index < Threads(shape); ++index) {
    const Word block = index / static_cast<Word>(ThreadsPerBlock(shape));
    const Word thread = index % static_cast<Word>(ThreadsPerBlock(shape));
    const Word block_x = block % shape.grid[0], block_y = block / shape.grid[0] % shape.grid[1];
    const Word block_z = block / (shape.grid[0] * shape.grid[1]);
    const Word thread_x = thread % shape.block[0], thread_y = thread / shape.block[0] % shape.block[1];
    const Word thread_z = thread / (shape.block[0] * shape.block[1]);
    out[index] =
        block_z * 100000 + block_y * 10000 + block_x * 1000 + thread_z * 100 + thread_y * 10 + thread_x;
  }
}

void ReadGlobalsBody(const LaunchShape&, Arguments arguments) {
  Word* out = Argument<Word*>(arguments, 0);
  std::memcpy(out, contract_words, sizeof contract_words);
  out[4] = contract_constant;
}

void ReverseBody(const LaunchShape& shape, Arguments arguments) {
  Word* words = Argument<Word*>(arguments, 0);
  for (Word i = 0; i < shape.block[0] / 2; ++i) {
    const Word kept = words[i];
    words[i] = words[shape.block[0] - 1 - i];
    words[shape.block[0] - 1 - i] = kept;
  }
}

void SumBody(const LaunchShape&, Arguments arguments) {
  const Word* words = Argument<const Word*>(arguments, 1);
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < Argument<std::uint64_t>(arguments, 2); ++i) total += words[i];
  *Argument<std::uint64_t*>(arguments, 0) += total;
}

void ScatterAtomicsBody(const LaunchShape& shape, Arguments arguments) {
  Word* words = Argument<Word*>(arguments, 0);
  for (Word thread = 0; thread < Threads(shape); ++thread)
    for (Word i = 0; i < Argument<Word>(arguments, 2); ++i)
      ++words[(thread + i) % Argument<Word>(arguments, 1)];
}

void BulkCopyBody(const LaunchShape&, Arguments arguments) {
  std::memcpy(Argument<char*>(arguments, 0), Argument<const char*>(arguments, 1),
              Argument<std::uint64_t>(arguments, 2) * 16384);
}

void SumTwentyBody(const LaunchShape&, Arguments arguments) {
  Word sum = 0;
  for (int i = 1; i < 20; ++i) sum += Argument<Word>(arguments, i);
  *Argument<Word*>(arguments, 0) = sum;
}

constexpr KernelParameter kPointerValueCount[] = {{0, 8}, {8, 4}, {16, 8}};
constexpr KernelParameter kCopyParameters[] = {{0, 8}, {8, 8}, {16, 8}};
constexpr KernelParameter kPointerValue[] = {{0, 8}, {8, 4}};
constexpr KernelParameter kSpinParameters[] = {{0, 8}, {8, 8}, {16, 4}};
constexpr KernelParameter kByValueParameters[] = {{0, sizeof(Mixed)}, {sizeof(Mixed), 4}};
constexpr KernelParameter kPointerTwoValues[] = {{0, 8}, {8, 4}, {12, 4}};
constexpr KernelParameter kPointer[] = {{0, 8}};
constexpr KernelParameter kTwentyParameters[] = {
    {0, 8},  {8, 4},  {12, 4}, {16, 4}, {20, 4}, {24, 4}, {28, 4}, {32, 4}, {36, 4}, {40, 4},
    {44, 4}, {48, 4}, {52, 4}, {56, 4}, {60, 4}, {64, 4}, {68, 4}, {72, 4}, {76, 4}, {80, 4}};

constexpr KernelEntry kKernels[] = {
    {"fill", FillBody, nullptr, 3, kPointerValueCount},
    {"add", AddBody, nullptr, 3, kPointerValueCount},
    {"copy", CopyBody, nullptr, 3, kCopyParameters},
    {"chase", ChaseBody, nullptr, 2, kPointerValue},
    {"spin", SpinBody, SpinCost, 3, kSpinParameters},
    {"by_value", ByValueBody, nullptr, 2, kByValueParameters},
    {"count_threads", CountThreadsBody, nullptr, 1, kPointer},
    {"coordinates", CoordinatesBody, nullptr, 1, kPointer},
    {"read_globals", ReadGlobalsBody, nullptr, 1, kPointer},
    {"reverse", ReverseBody, nullptr, 1, kPointer},
    {"sum", SumBody, nullptr, 3, kCopyParameters},
    {"scatter_atomics", ScatterAtomicsBody, nullptr, 3, kPointerTwoValues},
    {"bulk_copy", BulkCopyBody, nullptr, 3, kCopyParameters},
    {"sum_twenty", SumTwentyBody, nullptr, 20, kTwentyParameters},
};

constexpr GlobalEntry kGlobals[] = {
    {"contract_words", contract_words, sizeof contract_words},
    {"contract_constant", &contract_constant, sizeof contract_constant},
};

constexpr Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
                          kImageVersion,
                          std::size(kKernels),
                          kKernels,
                          std::size(kGlobals),
                          kGlobals};

}  // namespace

extern "C" const Image* spillway_sim_image() { return &kImage; }
