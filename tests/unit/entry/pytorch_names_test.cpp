// Which structs PyTorch's kernels take, by their names (entry/pytorch_names.h).
#include "interposer/entry/pytorch_names.h"

#include <gtest/gtest.h>

#include <string>

namespace spillway::entry {
namespace {

TEST(PytorchNamesTest, NamesTellTheStruct) {
  const auto kind = [](const char* name) { return StructOf(name).kind; };
  EXPECT_EQ(kind("_ZN2at6native13reduce_kernelILi128ELi4ENS0_8ReduceOpIfEEEEvT1_"),
            ByValue::kReduction);
  EXPECT_EQ(kind("_ZN2at6native40_GLOBAL__N__0f_8_Shape_cu_4930CatArrayBatchedCopy_contigIEEv"),
            ByValue::kConcatenation);
  EXPECT_EQ(kind("_ZN4mine13reduce_kernelIfEEvT_"), ByValue::kNone);
  EXPECT_EQ(kind("_Z18CatArrayBatchedCopyPf"), ByValue::kNone);
}

int TensorsOf(const std::string& name) {
  const KnownStruct known = StructOf(name.c_str());
  return known.kind == ByValue::kElementwise ? known.tensors : 0;
}

// The function, as an argument of the caller.
int TensorsWith(const std::string& function) {
  return TensorsOf("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastI" +
                   function + "EEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_");
}

// From PyTorch 2.12.
TEST(PytorchNamesTest, TheFunctionTellsTheNumberOfTensors) {
  EXPECT_EQ(TensorsOf("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZ"
                      "ZNS0_23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE"
                      "5_clEvEUlfE_EEvS4_RKT_EUliE_EEviT1_"),
            2);
  EXPECT_EQ(TensorsOf("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZN"
                      "S0_43_GLOBAL__N__50f1b6c4_10_Dropout_cu_0e96ed3819masked_scale_kernelIbffEEv"
                      "RNS_6TensorERKS5_S8_T1_EUlfbE_EEvRNS_18TensorIteratorBaseERKT_EUliE_EEviS9"
                      "_"),
            3);
  EXPECT_EQ(TensorsOf("_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastINS"
                      "0_13BinaryFunctorIN3c108BFloat16ES5_S5_ZNS0_67_GLOBAL__N__06c19b41_28_Activa"
                      "tionThresholdKernel_cu_a429abd7_1560721threshold_kernel_implIS5_EEvRNS_18Te"
                      "nsorIteratorBaseET_SA_EUlS5_S5_E_EEEEvS9_RKSA_EUliE_EEviT1_"),
            3);
  EXPECT_EQ(TensorsOf("_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implINS0_13BUn"
                      "aryFunctorIN3c108BFloat16ES5_S5_NS0_15binary_internal10MulFunctorIfEEEEEEvR"
                      "NS_18TensorIteratorBaseERKT_EUliE_EEviT1_"),
            2);
}

TEST(PytorchNamesTest, ParametersOfAnyTypeCount) {
  EXPECT_EQ(TensorsWith("Z4mainEUlvE_"), 1);
  EXPECT_EQ(TensorsWith("Z4mainEUlffbE0_"), 4);
  EXPECT_EQ(TensorsWith("Z4mainEUlN3c104HalfES2_fE12_"), 4);
  EXPECT_EQ(TensorsWith("Z4mainEUlN3c107complexINS2_4HalfEEEE_"), 2);
  EXPECT_EQ(TensorsWith("NS0_15CUDAFunctor_addIfEE"), 3);
  EXPECT_EQ(TensorsWith("NS0_22CUDAFunctorOnOther_addIfEE"), 2);
  EXPECT_EQ(TensorsWith("NS0_11FillFunctorIfEE"), 1);
}

// With another number of tensors addresses would be overlooked.
TEST(PytorchNamesTest, OtherFunctionsTellNothing) {
  EXPECT_EQ(TensorsWith("NS0_11AbsFunctorIfEE"), 0) << "not listed";
  EXPECT_EQ(TensorsWith("N4mine13BinaryFunctorIfEE"), 0) << "of another library";
  EXPECT_EQ(TensorsWith("Z4mainE3Add"), 0) << "no closure";
  EXPECT_EQ(TensorsWith("Z4mainEUlT_E_"), 0);
  EXPECT_EQ(TensorsWith("Z4mainEUlPffE_"), 0);
  EXPECT_EQ(TensorsWith("Z4mainEUlfDv4_fE_"), 0);
  EXPECT_EQ(TensorsWith("Z4mainEUlZ4mainEUlfE_E_"), 0) << "a closure as parameter";
  EXPECT_EQ(TensorsWith("Z4mainEUlN3c1099HalfEE_"), 0);
  EXPECT_EQ(TensorsWith("Z4mainEUlS2E_"), 0);
  EXPECT_EQ(TensorsWith(""), 0);
}

TEST(PytorchNamesTest, OtherKernelsHaveNoSuchClosure) {
  EXPECT_EQ(
      TensorsOf("_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_kernelIZ4m"
                "ainEUlfE_EEvRNS_18TensorIteratorBaseERKT_EUliE_EEvlT1_"),
      0);
  EXPECT_EQ(
      TensorsOf("_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_4mineIZ4mainEUlfE_EEvRKT_EUli"
                "E_EEviT1_"),
      0);
  EXPECT_EQ(
      TensorsOf("_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implIZ4mainEUlf"
                "E_EEvRKT_EUlibE_EEviT1_"),
      0);
}

}  // namespace
}  // namespace spillway::entry
