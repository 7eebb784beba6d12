// Which addresses count in structs that PyTorch's kernels take by value.
#include "interposer/entry/pytorch_structs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <memory>
#include <vector>

#include "interposer/entry/parameter_scan.h"

namespace spillway::entry {
namespace {

using testing::Each;
using testing::IsSupersetOf;
using testing::Not;

constexpr CUdeviceptr kStale = 0x7f12'3456'7000;

CUdeviceptr Address(std::size_t i) { return 0x2000'0000'0000 + (i << 24); }
void* Pointer(std::size_t i) { return reinterpret_cast<void*>(Address(i)); }

// As in PyTorch's Reduce.cuh and OffsetCalculator.cuh.
template <int kTensors>
struct OffsetCalculator {
  int dimensions;
  struct {
    unsigned divisor, factor, shift;
  } sizes[25];
  unsigned strides[25][kTensors];
};
struct ReduceConfig {
  int element_size_bytes, num_inputs, num_outputs, step_input, step_output, ctas_per_output;
  int input_mult[3], output_mult[2];
  int block_width, block_height, num_threads;
  bool vectorize_input;
  int output_vec_size;
};
template <class Operation, class First>
struct ReduceOp {
  Operation operation;
  First ident;
  ReduceConfig config;
  OffsetCalculator<1> input;
  OffsetCalculator<2> output;
  const void* src;
  void* dst[2];
  void *acc_buf, *cta_buf, *semaphores;
  std::int64_t base_idx;
  bool accumulate, final_output;
  int noutputs;
};

// As in Shape.cu.
template <int kTensors, int kShapes, class Index>
struct Inputs {
  const void* input[kTensors];
  Index offset[kTensors], dim_size[kTensors], elements[kTensors];
  bool is_contiguous[kTensors];
  struct {
    Index sizes[4], strides[4];
  } shapes[kShapes];
};

template <class Struct>
std::unique_ptr<Struct> Stale() {
  auto made = std::make_unique<Struct>();
  auto* const bytes = reinterpret_cast<char*>(made.get());
  for (std::size_t at = 0; at + sizeof kStale <= sizeof(Struct); at += sizeof kStale)
    std::memcpy(bytes + at, &kStale, sizeof kStale);
  return made;
}

template <class Reduction>
std::unique_ptr<Reduction> MadeReduction(int outputs) {
  auto made = Stale<Reduction>();
  made->operation = {};
  made->ident = {};
  made->config = {4, 4096, 512, 256, 32, 64, {0, 1, 4}, {1, 0}, 32, 4, 128, false, 4};
  made->input.dimensions = 1;
  made->input.sizes[0] = {4096, 1, 12};
  made->output.dimensions = 2;
  made->output.sizes[0] = {512, 1, 9};
  made->output.sizes[1] = {3, 1431655766, 2};
  made->src = Pointer(1);
  made->dst[0] = Pointer(2);
  if (outputs == 2) made->dst[1] = Pointer(3);
  made->acc_buf = nullptr;
  made->cta_buf = Pointer(4);
  made->semaphores = Pointer(5);
  made->base_idx = 0;
  made->accumulate = false;
  made->final_output = true;
  made->noutputs = outputs;
  return made;
}

KernelParameters Layout(ByValue kind, std::uint32_t bytes) {
  KernelParameters layout;
  layout.by_value = kind;
  if (kind == ByValue::kConcatenation) layout.Add(8, 0);
  layout.Add(bytes, kind == ByValue::kConcatenation ? 8 : 0);
  return layout;
}

template <class Struct>
std::vector<CUdeviceptr> Scan(ByValue kind, Struct* data, unsigned grid_y = 1) {
  std::vector<CUdeviceptr> words;
  const auto add = [&words](CUdeviceptr word) { words.push_back(word); };
  CUdeviceptr output = Address(99);
  void* reduction[] = {data};
  void* concatenation[] = {&output, data};
  ScanParameters(Layout(kind, sizeof *data),
                 kind == ByValue::kConcatenation ? concatenation : reduction, {7, grid_y}, add);
  return words;
}

constexpr auto kReduces = ByValue::kReduction, kConcatenates = ByValue::kConcatenation;

TEST(PytorchStructsTest, NamesTellTheStruct) {
  EXPECT_EQ(StructOf("_ZN2at6native13reduce_kernelILi128ELi4ENS0_8ReduceOpIfEEEEvT1_"), kReduces);
  EXPECT_EQ(StructOf("_ZN2at6native40_GLOBAL__N__0f_8_Shape_cu_4930CatArrayBatchedCopy_contigIEEv"),
            kConcatenates);
  EXPECT_EQ(StructOf("_ZN4mine13reduce_kernelIfEEvT_"), ByValue::kNone);
  EXPECT_EQ(StructOf("_Z18CatArrayBatchedCopyPf"), ByValue::kNone);
}

template <class Operation, class First>
void ExpectReads() {
  using Reduction = ReduceOp<Operation, First>;
  auto sum = MadeReduction<Reduction>(1);
  EXPECT_THAT(Scan(kReduces, sum.get()),
              IsSupersetOf({Address(1), Address(2), Address(4), Address(5)}));
  EXPECT_THAT(Scan(kReduces, sum.get()), Each(Not(kStale)));
  auto mean_and_variance = MadeReduction<Reduction>(2);
  EXPECT_THAT(Scan(kReduces, mean_and_variance.get()), IsSupersetOf({Address(2), Address(3)}));
}

TEST(PytorchStructsTest, StaleWordsOfAReductionDoNotCount) {
  ExpectReads<char, float>();
  ExpectReads<float, double>();
  ExpectReads<std::int64_t, std::int64_t>();
  ExpectReads<char, std::complex<float>>();
  struct alignas(16) Wide {
    double real = 0, imaginary = 0;
  };
  ExpectReads<Wide, Wide>();
}

// An operation may hold addresses of its own.
TEST(PytorchStructsTest, TheOperationsWordsCount) {
  auto made = MadeReduction<ReduceOp<void*, float>>(1);
  made->operation = Pointer(8);
  EXPECT_THAT(Scan(kReduces, made.get()), IsSupersetOf({Address(8), Address(1)}));
}

TEST(PytorchStructsTest, AnotherLayoutIsScannedWhole) {
  using Reduction = ReduceOp<char, float>;
  const auto expect_whole = [](auto change) {
    auto made = MadeReduction<Reduction>(1);
    change(made.get());
    EXPECT_THAT(Scan(kReduces, made.get()), testing::Contains(kStale));
  };
  expect_whole([](Reduction* r) {
    r->input.dimensions = 26;  // as if the strides were a divider, too
    for (auto& size : r->input.sizes) size = {3, 1, 2};
    for (auto& stride : r->input.strides) stride[0] = 1;
  });
  expect_whole([](Reduction* r) { r->input.sizes[0].divisor = 0; });
  expect_whole([](Reduction* r) { r->output.sizes[1].shift = 33; });
  expect_whole([](Reduction* r) { r->noutputs = 3; });
  expect_whole([](Reduction* r) { r->config.num_threads = 4096; });
  expect_whole([](Reduction* r) { r->src = nullptr; });
}

template <class Struct>
std::unique_ptr<Struct> MadeInputs(unsigned tensors) {
  auto made = Stale<Struct>();
  auto offset = made->offset[0] = 12;
  for (unsigned i = 0; i < tensors; ++i) {
    made->input[i] = Pointer(10 + i);
    made->offset[i] = offset;
    made->dim_size[i] = 5 + i;
    offset += made->dim_size[i];
  }
  return made;
}

template <class Struct>
void ExpectInputs(unsigned tensors) {
  auto made = MadeInputs<Struct>(tensors);
  const std::vector<CUdeviceptr> words = Scan(kConcatenates, made.get(), tensors);
  EXPECT_THAT(words, Each(Not(kStale)));
  for (unsigned i = 0; i < tensors; ++i) EXPECT_THAT(words, testing::Contains(Address(10 + i)));
  EXPECT_THAT(words, testing::Contains(Address(99))) << "the output, another parameter";
}

TEST(PytorchStructsTest, OnlyTensorsOfTheLaunchAreConcatenated) {
  ExpectInputs<Inputs<128, 1, unsigned>>(3);
  ExpectInputs<Inputs<128, 1, unsigned>>(1);
  ExpectInputs<Inputs<64, 64, unsigned>>(64);
  ExpectInputs<Inputs<64, 1, std::uint64_t>>(2);
}

TEST(PytorchStructsTest, TensorsThatDoNotFollowEachOtherAllCount) {
  using Struct = Inputs<128, 1, unsigned>;
  auto made = MadeInputs<Struct>(3);
  made->offset[2] += 1;
  EXPECT_THAT(Scan(kConcatenates, made.get(), 3), testing::Contains(kStale));
  EXPECT_THAT(Scan(kConcatenates, MadeInputs<Struct>(3).get(), 129), testing::Contains(kStale));
  EXPECT_THAT(Scan(kConcatenates, MadeInputs<Struct>(3).get(), 0), testing::Contains(kStale));
}

}  // namespace
}  // namespace spillway::entry
