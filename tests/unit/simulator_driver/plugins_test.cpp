// Plug-ins beside the driver: kernels written for the CPU, by the names that a module lists.
#include <string>

#include "tests/unit/simulator_driver/driver_test.h"

namespace spillway::simulator {
namespace {

std::string PtxWith(const std::string& kernel) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry " + kernel +
         "(.param .align 8 .b8 launch[4040])\n{\nret;\n}\n";
}

class PluginsTest : public DriverTest {
 protected:
  static unsigned KernelsIn(CUmodule module) {
    unsigned count = 0;
    EXPECT_OK(cuModuleGetFunctionCount(&count, module));
    return count;
  }
};

TEST_F(PluginsTest, ModuleThatListsAKernelOfAPluginHasIt) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_OK(cuModuleLoadData(&module, PtxWith("spillway_fingerprint").c_str()));
  EXPECT_EQ(KernelsIn(module), 1u);
  EXPECT_OK(cuModuleGetFunction(&function, module, "spillway_fingerprint"));
}

TEST_F(PluginsTest, OtherModulesHaveNoneOfItsKernels) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_OK(cuModuleLoadData(&module, PtxWith("of_the_program").c_str()));
  EXPECT_EQ(KernelsIn(module), 0u);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "spillway_fingerprint"), CUDA_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace spillway::simulator
