// The kernels of contract_kernels.cu for the simulated GPU; `spin` lasts about as long as on a GPU.
#include <cstdint>
#include <cstring>
#include <iterator>

#include "simulator/kernels/device/surfaces.h"
#include "simulator/kernels/device/tensor_maps.h"
#include "simulator/kernels/device/textures.h"
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
    const Word thread_x = thread % shape.block[0],
               thread_y = thread / shape.block[0] % shape.block[1];
    const Word thread_z = thread / (shape.block[0] * shape.block[1]);
    out[index] = block_z * 100000 + block_y * 10000 + block_x * 1000 + thread_z * 100 +
                 thread_y * 10 + thread_x;
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

void FetchLineBody(const LaunchShape&, Arguments arguments) {
  float* out = Argument<float*>(arguments, 0);
  const auto count = Argument<Word>(arguments, 2);
  for (Word i = 0; i < count; ++i) {
    out[i] = tex1Dfetch<float>(Argument<cudaTextureObject_t>(arguments, 1), static_cast<int>(i));
  }
}

void FetchLineBindlessBody(const LaunchShape&, Arguments arguments) {
  float* out = Argument<float*>(arguments, 0);
  const auto count = Argument<Word>(arguments, 2);
  for (Word i = 0; i < count; ++i) {
    out[i] =
        tex1Dfetch<float>(*Argument<const cudaTextureObject_t*>(arguments, 1), static_cast<int>(i));
  }
}

void SamplePlaneBody(const LaunchShape&, Arguments arguments) {
  float* out = Argument<float*>(arguments, 0);
  const auto texture = Argument<cudaTextureObject_t>(arguments, 1);
  const float* places = Argument<const float*>(arguments, 2);
  const auto count = Argument<Word>(arguments, 3);
  for (Word i = 0; i < count; ++i, places += 3) {
    out[i] = tex2DLod<float>(texture, places[0], places[1], places[2]);
  }
}

void SampleVolumeBody(const LaunchShape&, Arguments arguments) {
  float* out = Argument<float*>(arguments, 0);
  const auto texture = Argument<cudaTextureObject_t>(arguments, 1);
  const float* places = Argument<const float*>(arguments, 2);
  const auto count = Argument<Word>(arguments, 3);
  for (Word i = 0; i < count; ++i, places += 3) {
    out[i] = tex3D<float>(texture, places[0], places[1], places[2]);
  }
}

void SurfaceAddBody(const LaunchShape&, Arguments arguments) {
  const auto surface = Argument<cudaSurfaceObject_t>(arguments, 0);
  const auto width = Argument<Word>(arguments, 1), height = Argument<Word>(arguments, 2);
  for (Word i = 0; i < width * height; ++i) {
    const int x = static_cast<int>(i % width), y = static_cast<int>(i / width);
    const auto before = surf2Dread<float>(surface, x * 4, y);
    surf2Dwrite(before + static_cast<float>(100 * y + x), surface, x * 4, y);
  }
}

void CopyTile(const void* map, Arguments arguments) {
  float tile[1024];
  const auto count = Argument<Word>(arguments, 4);
  spillway_tensor_load(tile, map, Argument<int>(arguments, 2), Argument<int>(arguments, 3));
  std::memcpy(Argument<float*>(arguments, 0), tile, count * sizeof(float));
}

void TileByParameterBody(const LaunchShape&, Arguments arguments) {
  CopyTile(arguments[1], arguments);
}
void TileByPointerBody(const LaunchShape&, Arguments arguments) {
  CopyTile(Argument<const void*>(arguments, 1), arguments);
}

constexpr KernelParameter kPointerValueCount[] = {{0, 8}, {8, 4}, {16, 8}};
constexpr KernelParameter kCopyParameters[] = {{0, 8}, {8, 8}, {16, 8}};
constexpr KernelParameter kPointerValue[] = {{0, 8}, {8, 4}};
constexpr KernelParameter kSpinParameters[] = {{0, 8}, {8, 8}, {16, 4}};
constexpr KernelParameter kByValueParameters[] = {{0, sizeof(Mixed)}, {sizeof(Mixed), 4}};
constexpr KernelParameter kPointerTwoValues[] = {{0, 8}, {8, 4}, {12, 4}};
constexpr KernelParameter kPointer[] = {{0, 8}};
constexpr KernelParameter kFetchParameters[] = {{0, 8}, {8, 8}, {16, 4}};
constexpr KernelParameter kSampleParameters[] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};
constexpr KernelParameter kSurfaceParameters[] = {{0, 8}, {8, 4}, {12, 4}};
constexpr KernelParameter kTileByParameter[] = {{0, 8}, {128, 128}, {256, 4}, {260, 4}, {264, 4}};
constexpr KernelParameter kTileByPointer[] = {{0, 8}, {8, 8}, {16, 4}, {20, 4}, {24, 4}};
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
    {"fetch_line", FetchLineBody, nullptr, 3, kFetchParameters},
    {"fetch_line_bindless", FetchLineBindlessBody, nullptr, 3, kFetchParameters},
    {"sample_plane", SamplePlaneBody, nullptr, 4, kSampleParameters},
    {"sample_volume", SampleVolumeBody, nullptr, 4, kSampleParameters},
    {"surface_add", SurfaceAddBody, nullptr, 3, kSurfaceParameters},
    {"tile_by_parameter", TileByParameterBody, nullptr, 5, kTileByParameter},
    {"tile_by_pointer", TileByPointerBody, nullptr, 5, kTileByPointer},
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
