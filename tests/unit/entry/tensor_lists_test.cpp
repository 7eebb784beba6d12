// Which addresses count in the structs that PyTorch's multi_tensor_apply_kernel takes by value.
#include "interposer/entry/tensor_lists.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace spillway::entry {
namespace {

constexpr std::int64_t kChunk = 65536;

// As in PyTorch's MultiTensorApply.cuh, for CUDA 13 and for earlier ones.
template <int kDepth, int kTensors, int kBlocks, class Index>
struct Plain {
  const void* addresses[kDepth][kTensors];
  std::int64_t elements[kTensors];
  Index block_to_tensor[kBlocks];
  int block_to_chunk[kBlocks];
  int start_tensor_this_launch;
};
template <int kDepth, int kTensors, int kBlocks, class Index, class Scalar>
struct Scalars {
  const void* addresses[kDepth][kTensors];
  std::int64_t elements[kTensors];
  Scalar scalars[kTensors];
  Index block_to_tensor[kBlocks];
  int block_to_chunk[kBlocks];
};
template <int kDepth, int kTensors, int kBlocks, class Index>
struct Fused {
  const void* addresses[kDepth][kTensors];
  std::int64_t elements[kTensors];
  const void* steps[kTensors];
  Index block_to_tensor[kBlocks];
  int block_to_chunk[kBlocks];
  int start_tensor_this_launch;
};
struct alignas(16) WideComplex {
  double real, imaginary;
};

const void* Address(std::size_t list, std::size_t tensor) {
  return reinterpret_cast<const void*>(0x7000'0000'0000 + (list << 32) + (tensor << 12));
}

// All entries are set, as stale ones are. The launch begins at `first_chunk` of the first tensor.
// Returns the number of blocks.
template <class Lists>
unsigned Fill(const std::vector<std::int64_t>& elements, std::int64_t first_chunk, Lists* lists) {
  for (std::size_t list = 0; list < std::size(lists->addresses); ++list) {
    for (std::size_t i = 0; i < std::size(lists->elements); ++i)
      lists->addresses[list][i] = Address(list, i);
  }
  for (auto& each : lists->elements) each = 77;
  unsigned blocks = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    lists->elements[i] = elements[i];
    const std::int64_t chunks = (elements[i] + kChunk - 1) / kChunk;
    for (std::int64_t chunk = i == 0 ? first_chunk : 0; chunk < chunks; ++chunk, ++blocks) {
      lists->block_to_tensor[blocks] = static_cast<decltype(lists->block_to_tensor[0] + 0)>(i);
      lists->block_to_chunk[blocks] = static_cast<int>(chunk);
    }
  }
  return blocks;
}

using Kind = TensorLists::Kind;

template <int kDepth, int kTensors, int kBlocks, class Index>
TensorLists Named(const Plain<kDepth, kTensors, kBlocks, Index>&) {
  return {Kind::kPlain, kDepth, 0};
}
template <int kDepth, int kTensors, int kBlocks, class Index, class Scalar>
TensorLists Named(const Scalars<kDepth, kTensors, kBlocks, Index, Scalar>&) {
  return {Kind::kScalars, kDepth, sizeof(Scalar)};
}
template <int kDepth, int kTensors, int kBlocks, class Index>
TensorLists Named(const Fused<kDepth, kTensors, kBlocks, Index>&) {
  return {Kind::kFused, kDepth, 0};
}

template <class Lists>
std::optional<std::vector<CUdeviceptr>> Scan(const Lists& lists, unsigned blocks) {
  std::vector<CUdeviceptr> words;
  const auto add = [&words](CUdeviceptr word) { words.push_back(word); };
  if (!ScanTensorLists(Named(lists), &lists, sizeof lists, blocks, add)) return {};
  return words;
}

std::vector<CUdeviceptr> Addresses(std::size_t lists, std::size_t tensors) {
  std::vector<CUdeviceptr> words;
  for (std::size_t list = 0; list < lists; ++list) {
    for (std::size_t i = 0; i < tensors; ++i)
      words.push_back(reinterpret_cast<CUdeviceptr>(Address(list, i)));
  }
  return words;
}

template <class Lists>
void ExpectReads(std::size_t depth) {
  auto lists = std::make_unique<Lists>();
  const unsigned blocks = Fill({5, 3 * kChunk, kChunk + 1}, 0, lists.get());
  EXPECT_EQ(Scan(*lists, blocks), Addresses(depth, 3));
}

TEST(TensorListsTest, OnlyTensorsOfTheLaunchsBlocksCount) {
  ExpectReads<Plain<1, 770, 2240, std::uint16_t>>(1);
  ExpectReads<Plain<3, 336, 2240, std::uint16_t>>(3);
  ExpectReads<Plain<5, 210, 2240, std::uint16_t>>(5);
  ExpectReads<Plain<1, 110, 320, std::uint8_t>>(1);
  ExpectReads<Plain<4, 36, 320, std::uint8_t>>(4);
}

TEST(TensorListsTest, ScalarsHaveTheirOwnSizes) {
  ExpectReads<Scalars<1, 672, 2240, std::uint16_t, float>>(1);
  ExpectReads<Scalars<3, 336, 2240, std::uint16_t, double>>(3);
  ExpectReads<Scalars<2, 420, 2240, std::uint16_t, WideComplex>>(2);
  ExpectReads<Scalars<2, 64, 320, std::uint8_t, float>>(2);
  ExpectReads<Scalars<1, 72, 320, std::uint8_t, WideComplex>>(1);
}

TEST(TensorListsTest, FusedOptimisersAlsoNameTheirSteps) {
  auto lists = std::make_unique<Fused<4, 252, 2240, std::uint16_t>>();
  const unsigned blocks = Fill({10, 20}, 0, lists.get());
  for (std::size_t i = 0; i < std::size(lists->steps); ++i) lists->steps[i] = Address(9, i);
  std::vector<CUdeviceptr> expected = Addresses(4, 2);
  expected.push_back(reinterpret_cast<CUdeviceptr>(Address(9, 0)));
  expected.push_back(reinterpret_cast<CUdeviceptr>(Address(9, 1)));
  EXPECT_EQ(Scan(*lists, blocks), expected);
}

using Lists = Plain<2, 448, 2240, std::uint16_t>;

// Layouts of another depth or scalar have the same size and offset of the blocks' tables. Their
// element counts then are other words, such as addresses.
TEST(TensorListsTest, LaunchWithinOneTensorIsNotTakenForFewerLists) {
  auto adam = std::make_unique<Scalars<3, 48, 320, std::uint8_t, float>>();
  const unsigned blocks = Fill({320 * kChunk}, 0, adam.get());
  EXPECT_EQ(Scan(*adam, blocks), Addresses(3, 1)) << "addcdiv_, CUDA 12";
  auto wide = std::make_unique<Scalars<3, 336, 2240, std::uint16_t, float>>();
  EXPECT_EQ(Scan(*wide, Fill({5}, 0, wide.get())), Addresses(3, 1)) << "CUDA 13";
  auto of_double = std::make_unique<Scalars<3, 48, 320, std::uint8_t, double>>();
  EXPECT_EQ(Scan(*of_double, Fill({5}, 0, of_double.get())), Addresses(3, 1));
  auto sgd = std::make_unique<Plain<3, 48, 320, std::uint8_t>>();
  EXPECT_EQ(Scan(*sgd, Fill({5}, 0, sgd.get())), Addresses(3, 1))
      << "fused SGD with momentum, CUDA 12";
  auto five = std::make_unique<Plain<5, 210, 2240, std::uint16_t>>();
  EXPECT_EQ(Scan(*five, Fill({5}, 0, five.get())), Addresses(5, 1));
}

// Depth 4 with floats and depth 3 with bytes even have the element counts at the same offset.
TEST(TensorListsTest, FourListsWithScalarsAreNotTakenForThree) {
  auto lists = std::make_unique<Scalars<4, 36, 320, std::uint8_t, float>>();
  EXPECT_EQ(Scan(*lists, Fill({5, 3 * kChunk, 7}, 0, lists.get())), Addresses(4, 3))
      << "addcdiv with a list of scalars, CUDA 12";
  auto wide = std::make_unique<Scalars<4, 252, 2240, std::uint16_t, float>>();
  EXPECT_EQ(Scan(*wide, Fill({5, 3 * kChunk, 7}, 0, wide.get())), Addresses(4, 3)) << "CUDA 13";
}

TEST(TensorListsTest, FirstTensorMayHaveBegunInAnEarlierLaunch) {
  auto lists = std::make_unique<Lists>();
  const unsigned blocks = Fill({9 * kChunk, 4}, 7, lists.get());
  EXPECT_EQ(blocks, 3u);
  EXPECT_EQ(Scan(*lists, blocks), Addresses(2, 2));
}

TEST(TensorListsTest, LastTensorMayEndInALaterLaunch) {
  auto lists = std::make_unique<Lists>();
  const unsigned blocks = Fill({4, 9 * kChunk}, 0, lists.get());
  EXPECT_EQ(Scan(*lists, blocks - 5), Addresses(2, 2));
}

TEST(TensorListsTest, AllTensorsAndAllBlocksMayBeTaken) {
  auto lists = std::make_unique<Lists>();
  EXPECT_EQ(Scan(*lists, Fill(std::vector<std::int64_t>(448, 1), 0, &*lists)), Addresses(2, 448));
  EXPECT_EQ(Scan(*lists, Fill({2240 * kChunk}, 0, &*lists)), Addresses(2, 1));
}

// Whatever contradicts the layout makes all words count.
TEST(TensorListsTest, ContentThatContradictsTheLayoutIsNotBelieved) {
  const std::vector<std::int64_t> elements = {5, 3 * kChunk, kChunk + 1};
  const auto is_read_after = [&](auto change) {
    auto lists = std::make_unique<Lists>();
    unsigned blocks = Fill(elements, 0, lists.get());
    change(lists.get(), &blocks);
    return Scan(*lists, blocks).has_value();
  };
  EXPECT_TRUE(is_read_after([](Lists*, unsigned*) {}));
  EXPECT_FALSE(is_read_after([](Lists* it, unsigned*) { it->block_to_tensor[2] = 2; }));
  EXPECT_FALSE(is_read_after([](Lists* it, unsigned*) { it->block_to_tensor[0] = 1; }));
  EXPECT_FALSE(is_read_after([](Lists* it, unsigned*) { it->block_to_chunk[2] = 0; }));
  EXPECT_FALSE(is_read_after([](Lists* it, unsigned*) { it->block_to_chunk[0] = -1; }));
  EXPECT_FALSE(is_read_after([](Lists* it, unsigned*) { it->elements[1] += 1; }));
  EXPECT_FALSE(is_read_after([](Lists* it, unsigned*) { it->elements[2] = kChunk; }));
  EXPECT_FALSE(is_read_after([](Lists* it, unsigned*) { it->elements[0] = 0; }));
  EXPECT_FALSE(is_read_after([](Lists*, unsigned* blocks) { *blocks = 0; }));
  EXPECT_FALSE(is_read_after([](Lists*, unsigned* blocks) { *blocks = 2241; }));
  EXPECT_FALSE(is_read_after([](Lists*, unsigned* blocks) { *blocks += 1; }));
}

TEST(TensorListsTest, ChunkBehindItsTensorIsNotBelieved) {
  auto lists = std::make_unique<Lists>();
  const unsigned blocks = Fill({9 * kChunk}, 7, lists.get());
  lists->elements[0] = 5 * kChunk;
  EXPECT_FALSE(Scan(*lists, blocks));
}

TEST(TensorListsTest, AnotherSizeOrKindIsNotRead) {
  struct {
    Lists lists;
    std::int64_t more;
  } longer = {};
  const unsigned blocks = Fill({5, 6}, 0, &longer.lists);
  const auto is_read = [&](TensorLists named, std::size_t size_bytes) {
    return ReadTensorLists(named, &longer, size_bytes, blocks).has_value();
  };
  EXPECT_TRUE(is_read({Kind::kPlain, 2, 0}, sizeof longer.lists));
  EXPECT_FALSE(is_read({Kind::kPlain, 2, 0}, sizeof longer));
  EXPECT_FALSE(is_read({Kind::kFused, 2, 0}, sizeof longer.lists));
  EXPECT_FALSE(is_read({}, sizeof longer.lists));
}

TEST(TensorListsTest, StructComesFromTheKernelsName) {
  const auto of = [](const std::string& argument) {
    const std::string name = "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_" +
                             argument + "NS1_14UnaryOpFunctorIfLi2ELi1ELi1EEEEEvT_T0_DpT1_";
    return TensorListsOf(name.c_str());
  };
  EXPECT_EQ(of("18TensorListMetadataILi3EEE"), (TensorLists{Kind::kPlain, 3, 0}));
  EXPECT_EQ(of("32FusedOptimizerTensorListMetadataILi4EEE"), (TensorLists{Kind::kFused, 4, 0}));
  EXPECT_EQ(of("28TensorListScalarListMetadataIfLi2EEE"), (TensorLists{Kind::kScalars, 2, 4}));
  EXPECT_EQ(of("28TensorListScalarListMetadataIN3c107complexIdEELi1EEE"),
            (TensorLists{Kind::kScalars, 1, 16}));
  EXPECT_EQ(of("28TensorListScalarListMetadataI7UnknownLi1EEE"), TensorLists());
  EXPECT_EQ(of("18TensorListMetadataILi6EEE"), TensorLists()) << "more lists than there are";
  EXPECT_EQ(of("18TensorListMetadataILi12EEE"), TensorLists());
  EXPECT_EQ(of("18TensorListMetadataIfLi2EEE"), TensorLists());
  EXPECT_EQ(of("19OtherTensorMetadataILi2EEE"), TensorLists());
  EXPECT_EQ(TensorListsOf("_Z6kernel18TensorListMetadataILi2EEE"), TensorLists());
}

}  // namespace
}  // namespace spillway::entry
