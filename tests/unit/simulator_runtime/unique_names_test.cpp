#include "simulator/runtime/unique_names.h"

#include <gtest/gtest.h>

namespace spillway::simulator::runtime {
namespace {

TEST(UniqueNamesTest, MapsUnnamedNamespacesToOneName) {
  EXPECT_EQ(WithoutFileMarks("_ZN2ns36_GLOBAL__N__ac6a078a_4_a_cu_4c6df5c12akEPi"),
            "_ZN2ns12_GLOBAL__N_12akEPi");
  EXPECT_EQ(WithoutFileMarks("_Z5takesN36_GLOBAL__N__ac6a078a_4_a_cu_4c6df5c11SEPi"),
            "_Z5takesN12_GLOBAL__N_11SEPi");
}

TEST(UniqueNamesTest, DropsTheFileBeforeVariablesOfUnnamedNamespaces) {
  EXPECT_EQ(
      WithoutFileMarks(
          "_ZN34_INTERNAL_ac6a078a_4_a_cu_4c6df5c12ns36_GLOBAL__N__ac6a078a_4_a_cu_4c6df5c14adevE"),
      "_ZN2ns12_GLOBAL__N_14adevE");
}

TEST(UniqueNamesTest, DropsTheFileBeforeStaticNamesOfRelocatableCode) {
  EXPECT_EQ(WithoutFileMarks("__nv_static_27__1fb45d9a_6_zoo_cu_0a086377__Z14InternalKernelPi"),
            "_Z14InternalKernelPi");
  EXPECT_EQ(WithoutFileMarks("__nv_static_27__1fb45d9a_6_zoo_cu_0a086377_internal_value"),
            "internal_value");
}

TEST(UniqueNamesTest, KeepsOrdinaryNames) {
  for (const char* name : {"_Z5saxpyifPKfPf", "_Z5scaleIfEvPT_S0_i", "coefficients",
                           "_ZN1a1b4BothIfLi33EEEvPKT_", ""}) {
    EXPECT_EQ(WithoutFileMarks(name), name);
  }
}

}  // namespace
}  // namespace spillway::simulator::runtime
