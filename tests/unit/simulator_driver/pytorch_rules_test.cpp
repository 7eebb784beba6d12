// simulator/rules/pytorch.rules: every line is understood, and the families have their uses. Names
// and layouts are those of PyTorch's headers.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "simulator/driver/device/declared_uses.h"
#include "tests/support/paths.h"

namespace spillway::simulator {
namespace {

class PytorchRulesTest : public testing::Test {
 protected:
  void SetUp() override {
    const base::Status added = rules_.AddFile(test::SourcePath("simulator/rules/pytorch.rules"));
    ASSERT_TRUE(added.ok()) << added.text();
  }

  KernelEffect Describe(const char* name, std::vector<KernelParameter> parameters,
                        std::vector<void*> arguments, std::uint32_t blocks = 1) {
    const DeclaredKernel* const kernel = rules_.Find(name);
    EXPECT_NE(kernel, nullptr);
    if (kernel == nullptr) return {};
    const KernelEntry entry{name, nullptr, nullptr, static_cast<std::uint32_t>(parameters.size()),
                            parameters.data()};
    return kernel->Describe({entry, {{blocks, 1, 1}, {128, 1, 1}, 0}, arguments.data()});
  }

  DeclaredUses rules_;
  std::array<char, 4096> memory_{};
};

TEST_F(PytorchRulesTest, ContiguousKernelsUseWholeTensors) {
  std::int32_t count = 100;
  char functor = 0;
  const void* tensors[] = {memory_.data(), memory_.data() + 1024, memory_.data() + 2048};

  const KernelEffect effect = Describe(
      "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, "
      "bool, at::native::Compare<float> >, std::array<char*, 3ul> >(int, X, std::array<char*, "
      "3ul>)",
      {{0, 4}, {4, 1}, {8, 24}}, {&count, &functor, tensors});

  ASSERT_EQ(effect.uses.size(), 3u);
  EXPECT_EQ(effect.uses[0].kind, UseKind::kWrite);
  EXPECT_EQ(effect.uses[0].size_bytes, 100u);
  EXPECT_EQ(effect.uses[2].pointer, memory_.data() + 2048);
  EXPECT_EQ(effect.uses[2].size_bytes, 400u);
}

// int dims; 25 * (divisor, magic, shift); 25 * strides of each tensor; pointers; functor
TEST_F(PytorchRulesTest, StridedKernelsUseTheExtentsOfTheirTensors) {
  std::vector<std::uint32_t> closure(536 / 4, 0xdeadbeef);  // entries beyond dims are garbage
  closure[0] = 2;
  closure[1] = 3, closure[4] = 5;       // sizes
  closure[76] = 4, closure[77] = 8;     // strides of the first dimension
  closure[78] = 12, closure[79] = 100;  // of the second
  const void* tensors[] = {memory_.data(), memory_.data() + 2048};
  std::memcpy(&closure[126], tensors, sizeof tensors);
  std::int32_t count = 15;

  const auto describe = [&](const char* name) {
    return Describe(name, {{0, 4}, {8, 536}}, {&count, closure.data()});
  };
  const KernelEffect effect = describe(
      "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::"
      "AbsFunctor<float> >(at::TensorIteratorBase&, F)::{lambda(int)#1}>(int, C)");

  ASSERT_EQ(effect.uses.size(), 2u);
  EXPECT_EQ(effect.uses[0].pointer, tensors[0]);
  EXPECT_EQ(effect.uses[0].size_bytes, 2 * 4 + 4 * 12 + 4u);
  EXPECT_EQ(effect.uses[1].pointer, tensors[1]);
  EXPECT_EQ(effect.uses[1].size_bytes, 2 * 8 + 4 * 100 + 4u);

  // Regression: the strides of an input made a kernel read what lies behind it, which differs from
  // run to run.
  const KernelEffect unknown = describe(
      "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<F>(A, "
      "B)::{lambda(int)#1}>(int, C)");
  EXPECT_EQ(unknown.uses[0].size_bytes, 2 * 4 + 4 * 12 + 4u);
  EXPECT_EQ(unknown.uses[1].size_bytes, 2 * 8 + 4 * 100 + 1u);
}

// Regression: halves were written as floats, over the tensors behind them.
TEST_F(PytorchRulesTest, ReductionsOfHalvesWriteHalves) {
  std::vector<std::uint32_t> operation(1048 / 4, 0xdeadbeef);
  operation[2] = 4, operation[3] = 50, operation[4] = 7;
  const void* ends[] = {memory_.data(), memory_.data() + 2048};
  std::memcpy(&operation[246], ends, sizeof ends);
  operation[261] = 1;

  const KernelEffect effect = Describe(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, "
      "at::native::func_wrapper_t<c10::BFloat16, S>, unsigned int, c10::BFloat16, 4, 4> >(X)",
      {{0, 1048}}, {operation.data()});

  ASSERT_EQ(effect.uses.size(), 3u);
  EXPECT_EQ(effect.uses[0].size_bytes, 2u * 50 * 7);
  EXPECT_EQ(effect.uses[1].size_bytes, 14u);
}

// Where the neutral element has one or two bytes, the configuration begins four bytes earlier.
TEST_F(PytorchRulesTest, AnyIsFalse) {
  std::vector<std::uint32_t> operation(1040 / 4, 0xdeadbeef);
  operation[1] = 1, operation[2] = 50, operation[3] = 7;
  const void* ends[] = {memory_.data(), memory_.data() + 2048};
  std::memcpy(&operation[244], ends, sizeof ends);
  operation[259] = 1;

  const KernelEffect effect = Describe(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<bool, "
      "at::native::func_wrapper_t<bool, at::native::or_kernel_cuda(X)::{lambda(bool, bool)#1}>, "
      "unsigned int, bool, 4, 4> >(X)",
      {{0, 1040}}, {operation.data()});

  ASSERT_EQ(effect.uses.size(), 2u);
  EXPECT_EQ(effect.uses[0].size_bytes, 50u * 7);
  EXPECT_EQ(effect.uses[1].kind, UseKind::kFill);
  EXPECT_EQ(effect.uses[1].size_bytes, 7u);
  EXPECT_EQ(effect.uses[1].part, 0u);
}

// ops, neutral element, ReduceConfig, two offset calculators, then src, dst[2], ...
TEST_F(PytorchRulesTest, ReductionsReadInputsPerOutput) {
  std::vector<std::uint32_t> operation(1048 / 4, 0xdeadbeef);
  operation[2] = 4, operation[3] = 50, operation[4] = 7;  // element size, inputs, outputs
  const void* ends[] = {memory_.data(), memory_.data() + 2048};
  std::memcpy(&operation[246], ends, sizeof ends);
  operation[261] = 1;  // results

  const KernelEffect effect = Describe(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
      "at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> >(X)",
      {{0, 1048}}, {operation.data()});

  ASSERT_EQ(effect.uses.size(), 3u);
  EXPECT_EQ(effect.uses[0].pointer, ends[0]);
  EXPECT_EQ(effect.uses[0].size_bytes, 4u * 50 * 7);
  EXPECT_EQ(effect.uses[1].pointer, ends[1]);
  EXPECT_EQ(effect.uses[1].size_bytes, 28u);
  EXPECT_EQ(effect.uses[2].size_bytes, 0u);
}

// void* addresses[2][448]; int64 counts[448]; uint16 tensor_of_block[2240]; ...
TEST_F(PytorchRulesTest, ListsOfTensorsEndWithTheLastBlocksTensor) {
  std::vector<std::uint64_t> lists(24200 / 8, 0xdeadbeef);
  for (std::uint64_t i = 0; i < 3; ++i) {
    lists[i] = reinterpret_cast<std::uintptr_t>(memory_.data() + 100 * i);
    lists[448 + i] = lists[i] + 1000;
    lists[896 + i] = 5 + i;
  }
  const std::uint16_t tensor_of_block[] = {0, 1, 1, 2, 77};
  std::memcpy(&lists[1344], tensor_of_block, sizeof tensor_of_block);
  char functor[2] = {};

  const KernelEffect effect = Describe(
      "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
      "namespace)::TensorListMetadata<2>, at::native::(anonymous "
      "namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(X)",
      {{0, 24200}, {24200, 1}, {24201, 1}}, {lists.data(), functor, functor + 1}, 4);

  ASSERT_EQ(effect.uses.size(), 6u);
  EXPECT_EQ(effect.uses[2].pointer, memory_.data() + 200);
  EXPECT_EQ(effect.uses[2].size_bytes, 28u);
  EXPECT_EQ(effect.uses[2].kind, UseKind::kUpdate);
  EXPECT_EQ(effect.uses[5].pointer, memory_.data() + 1200);
  EXPECT_EQ(effect.uses[5].kind, UseKind::kRead);
}

}  // namespace
}  // namespace spillway::simulator
