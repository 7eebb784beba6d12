// Which addresses count in structs that PyTorch's kernels take by value.
#include "interposer/entry/pytorch_structs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstring>
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
  struct Divider {
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
  layout.by_value.kind = kind;
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
  expect_whole([](Reduction* r) { r->output.sizes[1].factor += 1; });
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

// As in CUDALoops.cuh, and as nvcc makes closures.
template <int kTensors, class Function>
struct Closure {
  OffsetCalculator<kTensors> offsets;
  const void* data[kTensors];
  Function function;
  const void* host_copy;
};

constexpr std::uint32_t kElements = 768 * 197 * 8;

template <int kTensors, class Function>
auto MadeClosure(Function function) {
  auto made = Stale<Closure<kTensors, Function>>();
  made->offsets.dimensions = 3;
  made->offsets.sizes[0] = {768, 1431655766, 10};
  made->offsets.sizes[1] = {197, 1286310003, 8};
  made->offsets.sizes[2] = {8, 1, 3};
  for (int i = 0; i < 3; ++i) {
    for (unsigned& stride : made->offsets.strides[i]) stride = 4;
  }
  for (int i = 0; i < kTensors; ++i) made->data[i] = Pointer(20 + static_cast<std::size_t>(i));
  made->function = function;
  made->host_copy = reinterpret_cast<const void*>(0x55d0'1234'5670);
  return made;
}

struct Scanned {
  std::vector<CUdeviceptr> words;
  interposer::UnreadParts unread;
};

template <class Closure>
Scanned ScanClosure(Closure* closure, int tensors, std::uint32_t elements = kElements) {
  KernelParameters layout;
  layout.by_value = {ByValue::kElementwise, static_cast<std::uint8_t>(tensors)};
  layout.Add(4, 0);
  layout.Add(sizeof *closure, 8);
  Scanned scanned;
  const auto add = [&scanned](CUdeviceptr word) { scanned.words.push_back(word); };
  void* parameters[] = {&elements, closure};
  ScanParameters(layout, parameters, {9, 1}, add, &scanned.unread);
  return scanned;
}

template <int kTensors, class Function>
void ExpectTensors(Function function) {
  auto closure = MadeClosure<kTensors>(function);
  const Scanned scanned = ScanClosure(closure.get(), kTensors);
  EXPECT_THAT(scanned.words, Each(Not(kStale)));
  for (std::size_t i = 0; i < kTensors; ++i)
    EXPECT_THAT(scanned.words, testing::Contains(Address(20 + i)));
}

TEST(PytorchStructsTest, StaleWordsOfAnElementwiseKernelDoNotCount) {
  ExpectTensors<1>(char{1});
  ExpectTensors<2>(1.0);
  ExpectTensors<3>(1.0);
  ExpectTensors<4>(std::array<double, 3>{});
  ExpectTensors<6>(std::array<double, 20>{});
}

// PyTorch's own kernels for sparse tensors are given most of what they read in this way.
TEST(PytorchStructsTest, AddressesThatAFunctionHoldsCount) {
  std::array<const void*, 14> held;
  for (std::size_t i = 0; i < held.size(); ++i) held[i] = Pointer(40 + i);
  auto closure = MadeClosure<2>(held);
  ASSERT_EQ(sizeof *closure, 640u) << "as with three tensors and a small function";
  const Scanned scanned = ScanClosure(closure.get(), 2);
  EXPECT_THAT(scanned.words, Each(Not(kStale)));
  for (std::size_t i = 0; i < held.size(); ++i)
    EXPECT_THAT(scanned.words, testing::Contains(Address(40 + i)));
}

TEST(PytorchStructsTest, NumbersOfAnElementwiseKernelAreNoAddresses) {
  auto closure = MadeClosure<2>(1.0);
  closure->offsets.strides[1][0] = 0;
  closure->offsets.strides[1][1] = 0x2000;  // as one word: the address of the first tensor
  EXPECT_THAT(ScanClosure(closure.get(), 2).words,
              Each(testing::AnyOf(testing::Lt(1u << 16), testing::Gt(Address(0)))));
}

TEST(PytorchStructsTest, TheLastWordMayBeAnAddressAllTheSame) {
  auto closure = MadeClosure<2>(1.0);
  closure->host_copy = Pointer(30);
  EXPECT_THAT(ScanClosure(closure.get(), 2).words, testing::Contains(Address(30)));
}

// Equal launches differ in nothing else, and the program may rely on all else.
TEST(PytorchStructsTest, WhatAnElementwiseKernelDoesNotRead) {
  auto closure = MadeClosure<3>(1.0);
  auto* const bytes = reinterpret_cast<unsigned char*>(closure.get());
  const auto is_set = [bytes](const void* begin, std::size_t count, std::size_t at) {
    const auto offset = static_cast<std::size_t>(static_cast<const unsigned char*>(begin) - bytes);
    return at >= offset && at < offset + count;
  };
  std::vector<bool> unread(sizeof *closure);
  for (const interposer::UnreadBytes& part : ScanClosure(closure.get(), 3).unread) {
    EXPECT_EQ(part.parameter, 1u);
    EXPECT_EQ(part.is_host_pointer, part.offset == sizeof *closure - 8);
    for (std::size_t i = 0; i < part.bytes; ++i) unread[part.offset + i] = true;
  }
  for (std::size_t at = 0; at < sizeof *closure; ++at) {
    const bool is_read =
        is_set(&closure->offsets.dimensions, 4, at) || is_set(closure->offsets.sizes, 3 * 12, at) ||
        is_set(closure->offsets.strides, 3 * 12, at) || is_set(closure->data, 24 + 8, at);
    EXPECT_EQ(unread[at], !is_read) << at;
  }
}

TEST(PytorchStructsTest, AnotherClosureIsScannedWhole) {
  const auto expect_whole = [](auto change, std::uint32_t elements = kElements) {
    auto closure = MadeClosure<2>(1.0);
    change(closure.get());
    const Scanned scanned = ScanClosure(closure.get(), 2, elements);
    EXPECT_THAT(scanned.words, testing::Contains(kStale));
    EXPECT_TRUE(scanned.unread.empty());
  };
  using Made = Closure<2, double>;
  expect_whole([](Made*) {}, kElements + 1);
  expect_whole([](Made*) {}, kElements - 1);
  expect_whole([](Made* c) { c->offsets.dimensions = 2; });
  expect_whole([](Made* c) { c->offsets.dimensions = 0; }, 1);
  expect_whole([](Made* c) { c->offsets.dimensions = 26; });
  expect_whole([](Made* c) { c->offsets.sizes[1].factor -= 1; });
  expect_whole([](Made* c) { c->offsets.sizes[2].shift = 4; });
  expect_whole([](Made* c) { c->data[1] = nullptr; });
}

TEST(PytorchStructsTest, AReductionsStaleBytesAreNotRead) {
  using Reduction = ReduceOp<char, float>;
  const auto stale_bytes = [](int outputs) {
    auto made = MadeReduction<Reduction>(outputs);
    KernelParameters layout = Layout(kReduces, sizeof(Reduction));
    interposer::UnreadParts unread;
    const auto add = [](CUdeviceptr) {};
    void* parameters[] = {made.get()};
    ScanParameters(layout, parameters, {7, 1}, add, &unread);
    std::size_t bytes = 0;
    for (const interposer::UnreadBytes& part : unread) bytes += part.bytes;
    return bytes;
  };
  // Dividers and strides of 24 and 23 dimensions, and what aligns two flags and the tail.
  EXPECT_EQ(stale_bytes(2), 24u * (12 + 4) + 23 * (12 + 8) + 3 + 4 + 2);
  EXPECT_EQ(stale_bytes(1), stale_bytes(2) + 8) << "the second output";
}

TEST(PytorchStructsTest, AConcatenationsStaleBytesAreNotRead) {
  using Struct = Inputs<64, 64, unsigned>;
  auto made = MadeInputs<Struct>(3);
  KernelParameters layout = Layout(kConcatenates, sizeof(Struct));
  interposer::UnreadParts unread;
  const auto add = [](CUdeviceptr) {};
  CUdeviceptr output = 0;
  void* parameters[] = {&output, made.get()};
  ScanParameters(layout, parameters, {7, 3}, add, &unread);
  std::size_t bytes = 0;
  for (const interposer::UnreadBytes& part : unread) bytes += part.bytes;
  EXPECT_EQ(bytes, 61u * (8 + 3 * 4 + 1 + 32));
}

}  // namespace
}  // namespace spillway::entry
