#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/paths.h"
#include "tests/unit/simulator_kernels/run_program.h"

namespace spillway::test {
namespace {

class SimkernelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("simkernels_test." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // With the build's executor: compiling it takes three times as long as the kernels.
  Finished Compile(const std::string& source, const std::string& options = "") {
    return CompileAll(source, "--executor " + BuildPath("kernel_executor") + " " + options);
  }
  Finished CompileAll(const std::string& source, const std::string& options) {
    std::ofstream(folder_ / "given.cu") << source;
    return RunProgram(SourcePath("tools/simkernels") + " " + (folder_ / "given.cu").string() +
                      " -o " + (folder_ / "given.so").string() + " " + options);
  }

  std::filesystem::path folder_;
};

TEST_F(SimkernelsTest, RefusesCubByFileAndLine) {
  const Finished finished = Compile("#include <cuda_runtime.h>\n#include <cub/cub.cuh>\n");

  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.output.find("given.cu:2: CUB is not supported"), std::string::npos)
      << finished.output;
}

// An instruction that no table of ours has.
constexpr char kStrangePtx[] = "  asm(\"mma.sync.aligned.m16n8k16 %0;\" : \"=r\"(*p));\n";

std::string KernelWith(const std::string& lines) {
  return "__global__ void K(int* p) {\n" + lines + "  *p = 1;\n}\n";
}

TEST_F(SimkernelsTest, RefusesUnknownInlinePtxByFileAndLine) {
  const Finished refused = Compile(KernelWith(kStrangePtx));

  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.output.find("given.cu:2: inline PTX (mma.sync"), std::string::npos)
      << refused.output;
}

TEST_F(SimkernelsTest, AcceptsUnknownInlinePtxInBranchesThatAreNotCompiled) {
  const std::string ptx = kStrangePtx;

  const Finished finished =
      Compile(KernelWith("#if 0\n" + ptx + "#endif\n#if __CUDA_ARCH__ < 300\n" + ptx +
                         "#endif\n#ifndef SPILLWAY_SIMULATED_KERNELS\n" + ptx + "#endif\n"));

  EXPECT_EQ(finished.exit_code, 0) << finished.output;
}

TEST_F(SimkernelsTest, RefusesKernelsWhoseHeadsAreMacros) {
  const Finished refused =
      Compile("#define HEAD(name) __global__ void name(int* p)\nHEAD(K) { *p = 1; }\n");

  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.output.find("given.cu:1: cannot read the declaration of kernel `name`"),
            std::string::npos)
      << refused.output;
}

// Regression: without a kernel there was no plug-in, so the program's symbols were invalid.
TEST_F(SimkernelsTest, MakesAPluginOfVariablesAlone) {
  EXPECT_EQ(Compile("__device__ int symbol = 3;\n").exit_code, 0);
  EXPECT_EQ(Compile("int ordinary = 3;\n").exit_code, 1);
}

TEST_F(SimkernelsTest, AcceptsMacrosThatAreQualifiers) {
  const Finished finished = Compile(
      "#define KERNEL extern \"C\" __global__ __attribute__((visibility(\"default\")))\n"
      "KERNEL void __launch_bounds__(64) K(int* p) { *p = 1; }\n",
      "-v");

  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  EXPECT_NE(finished.output.find("\nK\n"), std::string::npos) << finished.output;
}

TEST_F(SimkernelsTest, AcceptsAHeaderOfTheProgramNamedAsOneOfTheToolkit) {
  std::filesystem::create_directories(folder_ / "include");
  std::ofstream(folder_ / "include/cuda.h") << "struct OwnHeader { int value; };\n";

  const Finished finished =
      Compile("#include \"cuda.h\"\n__global__ void K(OwnHeader* p) { p->value = 1; }\n",
              "-I " + (folder_ / "include").string());

  EXPECT_EQ(finished.exit_code, 0) << finished.output;
}

TEST_F(SimkernelsTest, RefusesAFileWithoutKernels) {
  const Finished finished =
      Compile("template <typename T> __global__ void Never(T* p) { *p = T(); }\n");

  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.output.find("no kernel was found"), std::string::npos) << finished.output;
}

TEST_F(SimkernelsTest, ReportsTheCompilersErrorsAtTheLinesOfTheSource) {
  const Finished finished = Compile(
      "__global__ void K(int* p) {\n  extern __shared__ int s[];\n  *p = s[0];\n  "
      "undeclared();\n}\n");

  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.output.find("given.cu:4:3: error"), std::string::npos) << finished.output;
}

TEST_F(SimkernelsTest, NamesKernelsAsNvccDoes) {
  const Finished finished = CompileAll(
      "static __global__ void Internal(int*) {}\n"
      "namespace a::b { template <typename T, int N> __global__ void Both(const T*, T (*)[N]) {} "
      "}\n"
      "template __global__ void a::b::Both<float, 3>(const float*, float (*)[3]);\n"
      "namespace c { static __device__ int hidden; __constant__ float shown[2]; }\n",
      "-v");

  EXPECT_EQ(finished.exit_code, 0) << finished.output;
  for (const char* name : {"\n_Z8InternalPi\n", "\n_ZN1a1b4BothIfLi3EEEvPKT_PA",
                           "\n_ZN1c6hiddenE\n", "\n_ZN1c5shownE\n"}) {
    EXPECT_NE(finished.output.find(name), std::string::npos) << name << " in " << finished.output;
  }
}

constexpr char kUsesVariables[] = R"(
extern __device__ int counter;
extern __constant__ float table[2];
void Count(int by);
__global__ void Read(int* out) { *out = counter + static_cast<int>(table[1]); }
int main() {
  int* out = nullptr;
  cudaMalloc(&out, sizeof *out);
  const float values[2] = {0, 100};
  cudaMemcpyToSymbol(table, values, sizeof values);
  Count(5);
  Count(6);
  Read<<<1, 1>>>(out);
  int seen = 0;
  cudaMemcpy(&seen, out, sizeof seen, cudaMemcpyDeviceToHost);
  return seen == 111 ? 0 : 1;
}
)";
constexpr char kDefinesVariables[] = R"(
__device__ int counter;
__constant__ float table[2];
__global__ void Add(int by) { counter += by; }
void Count(int by) { Add<<<1, 1>>>(by); }
)";

TEST_F(SimkernelsTest, SharesDeviceVariablesBetweenFiles) {
  std::ofstream(folder_ / "other.cu") << kDefinesVariables;
  const Finished compiled =
      Compile(kUsesVariables, "-O 0 --host " + (folder_ / "other.cu").string() + " --runtime " +
                                  BuildPath("simulator"));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.output;

  EXPECT_EQ(RunProgram((folder_ / "given.so").string()).exit_code, 0);
}

TEST_F(SimkernelsTest, PrintsItsUsage) {
  const Finished finished = RunProgram(SourcePath("tools/simkernels") + " --help");

  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_NE(finished.output.find("Not understood"), std::string::npos);
}

}  // namespace
}  // namespace spillway::test
