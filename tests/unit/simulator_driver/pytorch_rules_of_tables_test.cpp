// simulator/rules/pytorch.rules: kernels whose parameters are tables and structs, with the layouts
// of the public headers that the rules name. What a program leaves unset in them is garbage here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/simulator_driver/fake_launch.h"
#include "tests/unit/simulator_driver/pytorch_rules.h"

namespace spillway::simulator {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using Texts = std::vector<std::string>;

class PytorchTablesTest : public PytorchRulesTest<testing::Test> {
 protected:
  Texts Uses(const char* name, FakeLaunch launch) {
    const DeclaredKernel* const kernel = rules_->Find(name);
    EXPECT_NE(kernel, nullptr) << name;
    return kernel == nullptr ? Texts{} : TextsOf(launch.Describe(*kernel));
  }
};

#define ANONYMOUS "at::native::(anonymous namespace)::"

// Three tensors of 6, 9 and 3 elements; input[128], offset[128], dimSize[128], nElements[128], ...
TEST_F(PytorchTablesTest, ConcatenationReadsAsManyTensorsAsTheGridHasRows) {
  const auto launch = [](std::uint32_t first_offset) {
    FakeLaunch made({8, 2720, 32, 4, 4}, {{2, 3, 1}, {128, 1, 1}, 0});
    made.Set64(0, {0x9000}).Set64(1, {0x1000, 0x2000, 0x3000}).Set32(1, {first_offset}, 256);
    return made.Set32(1, {6, 9, 3}, 512).Set32(2, {6, 3}).Set32(2, {3, 1}, 4);
  };
  constexpr const char* kName = "void " ANONYMOUS "CatArrayBatchedCopy_contig<" ANONYMOUS
                                "OpaqueType<4u>, unsigned int, 2, 128, 1>(X)";
  EXPECT_THAT(Uses(kName, launch(0)),
              ElementsAre("w 9000 72", "r 1000 24", "r 2000 36", "r 3000 12"));
  // A later launch for the same list keeps what the earlier ones wrote.
  EXPECT_THAT(Uses(kName, launch(40)),
              ElementsAre("u 9000 72", "r 1000 24", "r 2000 36", "r 3000 12"));
  EXPECT_THAT(Uses("void " ANONYMOUS "CatArrayBatchedCopy_vectorized<" ANONYMOUS
                   "OpaqueType<2u>, unsigned int, 2, 128, 1, 16, 8>(X)",
                   launch(0)),
              ElementsAre("w 9000 288", "r 1000 12", "r 2000 18", "r 3000 6"));
}

TEST_F(PytorchTablesTest, ConcatenationOfStridedTensorsHasASmallerTable) {
  FakeLaunch launch({8, 3392, 32, 4, 4}, {{2, 1, 1}, {128, 1, 1}, 0});
  launch.Set64(0, {0x9000}).Set64(1, {0x1000}).Set32(1, {0}, 128).Set32(1, {6}, 256);
  launch.Set32(2, {6, 3}).Set32(2, {3, 1}, 4);
  EXPECT_THAT(Uses("void " ANONYMOUS "CatArrayBatchedCopy<" ANONYMOUS
                   "OpaqueType<4u>, unsigned int, 2, 64, 64>(X)",
                   launch),
              ElementsAre("w 9000 72", "r 1000 24"));
}

// TensorInfo: data, sizes[25], strides[25], dims
TEST_F(PytorchTablesTest, TensorsAreDescribedIn32And64Bits) {
  FakeLaunch narrow({216, 216, 8, 8, 4});
  for (const std::size_t i : {0, 1})
    narrow.Set64(i, {0x1000 + 0x1000 * i})
        .Set32(i, {3, 5}, 2)
        .Set32(i, {10, 1}, 27)
        .Set32(i, {2}, 52);
  EXPECT_THAT(Uses("void at::native::triu_tril_kernel<float, int, true, 2, false>(X)", narrow),
              ElementsAre("w 1000 100", "r 2000 100"));
  FakeLaunch wide({416, 416, 8, 8, 8});
  for (const std::size_t i : {0, 1})
    wide.Set64(i, {0x1000 + 0x1000 * i, 3, 5}).Set64(i, {10, 1}, 26).Set32(i, {2}, 102);
  EXPECT_THAT(Uses("void at::native::triu_tril_kernel<double, long, true, 2, false>(X)", wide),
              ElementsAre("w 1000 200", "r 2000 200"));
}

// Rows of 8 floats: 5 of them are chosen from 100.
TEST_F(PytorchTablesTest, IndexedDimensionsCountWhole) {
  FakeLaunch launch({216, 216, 216, 4, 4, 4, 4, 8});
  launch.Set64(0, {0x1000}).Set32(0, {1, 8}, 2).Set32(0, {8, 1}, 27).Set32(0, {2}, 52);
  launch.Set64(1, {0x2000}).Set32(1, {1, 8}, 2).Set32(1, {8, 1}, 27).Set32(1, {2}, 52);
  launch.Set64(2, {0x3000}).Set32(2, {5}, 2).Set32(2, {1}, 27).Set32(2, {1}, 52);
  launch.Set32(3, {0}).Set32(4, {0}).Set64(7, {100});
  EXPECT_THAT(Uses("void " ANONYMOUS "indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, "
                   "true>(X)",
                   launch),
              ElementsAre("w 1000 160", "r 2000 3200", "r 3000 40"));
}

// The closure: an offset calculator, output, input, how many indexes; their addresses, sizes,
// strides.
TEST_F(PytorchTablesTest, IndexingReadsTheWholeIndexedTensor) {
  FakeLaunch launch({8, 1240});
  launch.Set32(1, {1, 7}).Set32(1, {4, 0, 8}, 76).Set64(1, {0x1000, 0x2000, 2, 0x3000, 0x4000}, 76);
  launch.Set64(1, {10, 20}, 104).Set64(1, {80, 4}, 129);
  EXPECT_THAT(Uses("void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<"
                   "at::native::index_kernel_impl<at::native::OpaqueType<4> >(X)",
                   launch),
              ElementsAre("w 1000 28", "r 2000 800", "r 3000 56", "r 4000 56"));
  EXPECT_THAT(Uses("void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<"
                   "at::native::index_put_kernel_impl<at::native::OpaqueType<4> >(X)",
                   launch),
              ElementsAre("u 1000 824", "r 2000 4", "r 3000 56", "r 4000 56"));
}

// Batch 2, 3 heads of 64, 100 queries and keys, in tensors of (batch, sequence, heads, 64).
FakeLaunch FlashLaunch(std::uint32_t size_bytes) {
  constexpr std::uint64_t kBatch = 19200, kRow = 192, kHead = 64;
  FakeLaunch launch({size_bytes});
  launch.Clear(0).Set64(0, {0x1000, 0x2000, 0x3000, kBatch, kBatch, kBatch, kRow, kRow, kRow});
  launch.Set64(0, {kHead, kHead, kHead}, 9).Set32(0, {3, 3, 1}, 24);
  launch.Set64(0, {0x4000, 0, kBatch, kRow, kHead, 0, 0x5000}, 14);
  return launch.Set32(0, {2, 100, 100, 0, 64, 128, 128, 64, 0, 0}, 44).Set64(0, {0x6000}, 54);
}

TEST_F(PytorchTablesTest, FlashAttentionWritesItsOutputAndSums) {
  EXPECT_THAT(
      Uses("void pytorch_flash::flash_fwd_kernel<T<64, T<64> >, false, true>(X)", FlashLaunch(472)),
      ElementsAre("r 1000 76800", "r 2000 76800", "r 3000 76800", "w 4000 76800", "w 5000 2400"));
  // With dropout it keeps the state of its random numbers for the way back.
  EXPECT_THAT(
      Uses("void pytorch_flash::flash_fwd_kernel<T<64, T<64> >, true, true>(X)", FlashLaunch(472)),
      IsSupersetOf({"w 6000 16"}));
}

TEST_F(PytorchTablesTest, FlashAttentionOfPackedSequencesHasTheirRowsInAll) {
  FakeLaunch launch = FlashLaunch(472);
  launch.Set64(0, {0x7000, 0x8000}, 28).Set32(0, {150}, 53);
  EXPECT_THAT(Uses("void pytorch_flash::flash_fwd_kernel<T<T<> >, false, true>(X)", launch),
              ElementsAre("r 1000 57600", "r 2000 57600", "r 3000 57600", "r 7000 12", "r 8000 12",
                          "w 4000 57600", "w 5000 1800"));
}

TEST_F(PytorchTablesTest, FlashAttentionsGradientsComeInThreeKernels) {
  constexpr std::uint64_t kBatch = 19200, kRow = 192, kHead = 64;
  FakeLaunch launch = FlashLaunch(648);
  launch.Set64(0, {0x10000, 0x20000, 0x30000, 0x40000, 0x50000, 0, 0, kBatch, kRow, kHead}, 59);
  launch.Set64(0, {kBatch, kBatch, kBatch, kRow, kRow, kRow, kHead, kHead, kHead, 0x60000}, 69);
  EXPECT_THAT(Uses("void pytorch_flash::flash_bwd_dot_do_o_kernel<true, T<> >(X)", launch),
              ElementsAre("r 4000 76800", "r 10000 76800", "w 60000 3072", "w 50000 196608"));
  EXPECT_THAT(Uses("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T<T<> >, "
                   "false, true>(X)",
                   launch),
              IsSupersetOf({"r 5000 2400", "r 60000 3072", "u 50000 196608", "w 30000 76800",
                            "w 40000 76800"}));
  EXPECT_THAT(Uses("void pytorch_flash::flash_bwd_convert_dq_kernel<T<> >(X, int)", launch),
              ElementsAre("r 50000 196608", "w 20000 76800"));
}

// Batch 2, 3 heads of 64, 40 queries, 50 keys; nothing masked.
TEST_F(PytorchTablesTest, AttentionInLittleMemoryPadsItsSums) {
  FakeLaunch launch({272});
  launch.Clear(0).Set64(0, {0x1000, 0x2000, 0x3000}).Set64(0, {0x4000, 0x4000, 0x5000}, 8);
  launch.Set32(0, {64, 64, 40, 50, 50, 1, 192, 192, 192, 0, 192, 64, 64, 64}, 24);
  launch.Set64(0, {7680, 9600, 9600}, 20).Set32(0, {2, 3}, 48);
  EXPECT_THAT(
      Uses("fmha_cutlassF_f32_aligned_64x64_rf_sm80(X)", launch),
      ElementsAre("r 1000 61440", "r 2000 76800", "r 3000 76800", "w 4000 61440", "w 5000 1536"));
  // Where sums of halves need a buffer of their own, it is written too.
  launch.Set64(0, {0x6000}, 9);
  EXPECT_THAT(Uses("fmha_cutlassF_bf16_aligned_32x128_gmem_sm80(X)", launch),
              ElementsAre("r 1000 30720", "r 2000 38400", "r 3000 38400", "w 4000 30720",
                          "w 6000 61440", "w 5000 1536"));
}

TEST_F(PytorchTablesTest, AttentionInLittleMemoryWritesThreeGradients) {
  FakeLaunch launch({464});
  launch.Clear(0).Set64(0, {0x1000, 0x2000, 0x3000, 0, 0x4000, 0x5000, 0x6000, 0x7000});
  launch.Set64(0, {0x10000, 0x20000, 0x30000, 0, 0x40000}, 10).Set32(0, {64, 64, 40, 50, 3}, 36);
  launch.Set64(0, {192, 192, 192, 0, 192}, 21).Set(0, 216, std::uint8_t{1}).Set64(0, {64}, 34);
  launch.Set32(0, {64, 64, 64}, 70).Set64(0, {7680, 7680, 9600, 9600, 0, 192, 64, 120, 40}, 38);
  launch.Set32(0, {2}, 94).Set64(0, {7680, 7680, 9600, 9600, 0, 64, 64, 64, 64}, 48);
  EXPECT_THAT(Uses("fmha_cutlassB_f32_aligned_64x64_k64_sm80(X)", launch),
              ElementsAre("r 1000 61440", "r 2000 76800", "r 3000 76800", "r 4000 1440",
                          "r 5000 61440", "r 6000 61440", "w 10000 61440", "w 20000 76800",
                          "w 30000 76800", "w 40000 1536", "r 7000 960"));
}

// Sorting 1000 keys of 64 bits, 8 bits at a time.
TEST_F(PytorchTablesTest, SortingMovesKeysAndValues) {
  FakeLaunch launch({8, 8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 1}, {{2, 1, 1}, {384, 1, 1}, 0});
  for (std::size_t i = 0; i < 8; ++i) launch.Set64(i, {0x1000 * (i + 1)});
  launch.Set32(8, {1000});
  EXPECT_THAT(
      Uses("void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<P, "
           "(at_cuda_detail::cub::SortOrder)0, long, at::cuda::cub::detail::OpaqueType<4>, U>(X)",
           launch),
      ElementsAre("w 1000 2048", "w 2000 4", "w 3000 2048", "r 4000 2048", "w 5000 8000",
                  "r 6000 8000", "w 7000 4000", "r 8000 4000"));
}

// 100 numbers; x != x is what isnan asks, and every number here is finite.
TEST_F(PytorchTablesTest, TestsForBadNumbersFindNone) {
  constexpr const char* kName =
      "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<float, float, "
      "bool, " ANONYMOUS "CompareEqFunctor<float> >, std::array<char*, 3ul> >(X)";
  const auto launch = [](std::uint64_t other) {
    return FakeLaunch({4, 4, 24}).Set32(0, {100}).Set32(1, {1}).Set64(2, {0x1000, 0x2000, other});
  };
  EXPECT_THAT(Uses(kName, launch(0x2000)), ElementsAre("f 1000 100", "r 2000 400", "r 2000 400"));
  EXPECT_THAT(Uses(kName, launch(0x3000)), ElementsAre("w 1000 100", "r 2000 400", "r 3000 400"));
}

TEST_F(PytorchTablesTest, CopiesToHalfPrecisionWriteHalves) {
  const FakeLaunch launch = FakeLaunch({4, 1, 16}).Set32(0, {100}).Set64(2, {0x1000, 0x2000});
  EXPECT_THAT(Uses("void at::native::vectorized_elementwise_kernel<8, "
                   "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda("
                   "float)#1}, std::array<char*, 2ul> >(X)",
                   launch),
              ElementsAre("w 1000 200", "r 2000 400"));
}

}  // namespace
}  // namespace spillway::simulator
