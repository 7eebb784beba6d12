// Modules, libraries, kernels: names, globals, attributes, parameters.
#include <string>

#include "tests/contract/device.h"

namespace spillway::contract {
namespace {

CUlibrary LoadLibrary() {
  CUlibrary library = nullptr;
  ASSERT_OK(
      cuLibraryLoadData(&library, KernelImage().data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  return library;
}

CUkernel LibraryKernel(CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  ASSERT_OK(cuLibraryGetKernel(&kernel, library, name));
  return kernel;
}

}  // namespace

CONTRACT(Module, FindsKernelsByName, "cuda.h:7532 cuModuleGetFunction") {
  UseDevice();
  const CUmodule module = LoadModule();
  CUfunction first = nullptr, second = nullptr;
  ASSERT_OK(cuModuleGetFunction(&first, module, "fill"));
  ASSERT_OK(cuModuleGetFunction(&second, module, "fill"));
  EXPECT_TRUE(first == second);
  EXPECT_EQ(cuModuleGetFunction(&first, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
}

CONTRACT(Module, GlobalsHaveAddressAndSize, "cuda.h:7609 cuModuleGetGlobal") {
  UseDevice();
  const CUmodule module = LoadModule();
  CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
  ASSERT_OK(cuModuleGetGlobal(&address, &size_bytes, module, "contract_words"));
  EXPECT_EQ(size_bytes, std::size_t{16});
  EXPECT_TRUE((ReadWords(address, 4) == std::vector<std::uint32_t>{11, 22, 33, 44}));
  EXPECT_OK(cuModuleGetGlobal(nullptr, &size_bytes, module, "contract_constant"));
  EXPECT_EQ(size_bytes, std::size_t{4});
  EXPECT_OK(cuModuleGetGlobal(&address, nullptr, module, "contract_constant"));
  EXPECT_EQ(cuModuleGetGlobal(&address, &size_bytes, module, "no_such_global"),
            CUDA_ERROR_NOT_FOUND);
}

CONTRACT(Module, KernelsSeeCopiesIntoGlobals, "cuda.h:7609 cuModuleGetGlobal") {
  UseDevice();
  const CUmodule module = LoadModule();
  CUdeviceptr words = 0, constant = 0;
  ASSERT_OK(cuModuleGetGlobal(&words, nullptr, module, "contract_words"));
  ASSERT_OK(cuModuleGetGlobal(&constant, nullptr, module, "contract_constant"));
  WriteWords(words, {1, 2, 3, 4});
  WriteWords(constant, {5});
  CUfunction kernel = nullptr;
  ASSERT_OK(cuModuleGetFunction(&kernel, module, "read_globals"));
  CUdeviceptr out = Allocate(20);
  void* parameters[] = {&out};
  ASSERT_OK(LaunchRaw(kernel, 1, 1, nullptr, parameters));
  EXPECT_TRUE((ReadWords(out, 5) == std::vector<std::uint32_t>{1, 2, 3, 4, 5}));
}

CONTRACT(Module, TwoLoadsAreObserved,
         "cuda.h:7365 cuModuleLoadData: each load has globals of its own") {
  UseDevice();
  CUdeviceptr first = 0, second = 0;
  ASSERT_OK(cuModuleGetGlobal(&first, nullptr, LoadModule(), "contract_words"));
  ASSERT_OK(cuModuleGetGlobal(&second, nullptr, LoadModule(), "contract_words"));
  OBSERVE("globals_are_separate", first != second);
}

CONTRACT(Module, UnloadsOnce, "cuda.h:7476 cuModuleUnload") {
  UseDevice();
  EXPECT_OK(cuModuleUnload(LoadModule()));
}

CONTRACT(Module, MissingFileIsNotFound, "cuda.h:7329 cuModuleLoad") {
  UseDevice();
  CUmodule module = nullptr;
  EXPECT_EQ(cuModuleLoad(&module, "/no/such/file.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
  OBSERVE("garbage_image", cuModuleLoadData(&module, "this is no image"));
}

CONTRACT(Function, NameModuleAndAttributes, "cuda.h:17190 cuFuncGetAttribute") {
  UseDevice();
  const CUfunction kernel = Kernel("fill");
  const char* name = nullptr;
  ASSERT_OK(cuFuncGetName(&name, kernel));
  EXPECT_EQ(std::string(name), std::string("fill"));
  CUmodule module = nullptr;
  EXPECT_OK(cuFuncGetModule(&module, kernel));
  EXPECT_TRUE(module != nullptr);
  int value = 0;
  ASSERT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel));
  EXPECT_EQ(value, 1024);
  ASSERT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel));
  EXPECT_EQ(value, 0);
}

CONTRACT(Function, DynamicSharedLimitCanBeRaised, "cuda.h:17257 cuFuncSetAttribute") {
  const CUdevice device = UseDevice();
  const int limit = Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  const CUfunction kernel = Kernel("reverse");
  EXPECT_OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit));
  int value = 0;
  ASSERT_OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel));
  EXPECT_EQ(value, limit);
  EXPECT_EQ(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 30),
            CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(Function, ParametersHaveOffsetsAndSizes, "cuda.h:17374 cuFuncGetParamInfo") {
  UseDevice();
  const CUfunction kernel = Kernel("fill");
  const std::size_t offsets[] = {0, 8, 16}, sizes[] = {8, 4, 8};
  for (std::size_t i = 0; i < 3; ++i) {
    std::size_t offset = 99, size = 99;
    ASSERT_OK(cuFuncGetParamInfo(kernel, i, &offset, &size));
    EXPECT_EQ(offset, offsets[i]);
    EXPECT_EQ(size, sizes[i]);
  }
  std::size_t offset = 0;
  EXPECT_EQ(cuFuncGetParamInfo(kernel, 3, &offset, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_OK(cuFuncGetParamInfo(kernel, 1, &offset, nullptr));
}

CONTRACT(Function, StructuresAreOneParameter, "cuda.h:17374 cuFuncGetParamInfo") {
  UseDevice();
  std::size_t offset = 99, size = 99;
  ASSERT_OK(cuFuncGetParamInfo(Kernel("by_value"), 0, &offset, &size));
  EXPECT_EQ(offset, std::size_t{0});
  EXPECT_EQ(size, std::size_t{32});
  ASSERT_OK(cuFuncGetParamInfo(Kernel("by_value"), 1, &offset, &size));
  EXPECT_EQ(offset, std::size_t{32});
  EXPECT_EQ(size, std::size_t{4});
}

CONTRACT(Function, OccupancyIsPositive,
         "cuda.h:21626 cuOccupancyMaxActiveBlocksPerMultiprocessor") {
  UseDevice();
  int blocks = 0, smallest_grid = 0, block_size = 0;
  ASSERT_OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Kernel("fill"), 256, 0));
  EXPECT_TRUE(blocks > 0);
  ASSERT_OK(
      cuOccupancyMaxPotentialBlockSize(&smallest_grid, &block_size, Kernel("fill"), nullptr, 0, 0));
  EXPECT_TRUE(block_size > 0 && smallest_grid > 0);
}

CONTRACT(Library, LoadsWithoutAContext, "cuda.h:7938 cuLibraryLoadData") {
  InitDevice();
  CUlibrary library = nullptr;
  OBSERVE("load_without_context", cuLibraryLoadData(&library, KernelImage().data(), nullptr,
                                                    nullptr, 0, nullptr, nullptr, 0));
}

CONTRACT(Library, KernelsBecomeFunctionsOfTheContext, "cuda.h:8136 cuKernelGetFunction") {
  UseDevice();
  const CUlibrary library = LoadLibrary();
  const CUkernel kernel = LibraryKernel(library, "fill");
  CUfunction function = nullptr;
  ASSERT_OK(cuKernelGetFunction(&function, kernel));
  CUdeviceptr words = Allocate(400);
  std::uint32_t value = 70;
  std::uint64_t count = 100;
  void* parameters[] = {&words, &value, &count};
  ASSERT_OK(LaunchRaw(function, 1, 32, nullptr, parameters));
  EXPECT_TRUE(AllWordsAre(words, 100, 70));
  CUkernel missing = nullptr;
  EXPECT_EQ(cuLibraryGetKernel(&missing, library, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
}

CONTRACT(Library, KernelsCanBeLaunchedAsFunctions,
         "cuda.h:17537 cuLaunchKernel: f may be a CUkernel") {
  UseDevice();
  const auto function = reinterpret_cast<CUfunction>(LibraryKernel(LoadLibrary(), "fill"));
  CUdeviceptr words = Allocate(400);
  std::uint32_t value = 71;
  std::uint64_t count = 100;
  void* parameters[] = {&words, &value, &count};
  ASSERT_OK(LaunchRaw(function, 1, 32, nullptr, parameters));
  EXPECT_TRUE(AllWordsAre(words, 100, 71));
}

CONTRACT(Library, KernelsReportNameAndParameters, "cuda.h:8519 cuKernelGetParamInfo") {
  UseDevice();
  const CUlibrary library = LoadLibrary();
  const CUkernel kernel = LibraryKernel(library, "by_value");
  const char* name = nullptr;
  ASSERT_OK(cuKernelGetName(&name, kernel));
  EXPECT_EQ(std::string(name), std::string("by_value"));
  std::size_t offset = 99, size = 99;
  ASSERT_OK(cuKernelGetParamInfo(kernel, 0, &offset, &size));
  EXPECT_EQ(size, std::size_t{32});
  EXPECT_EQ(cuKernelGetParamInfo(kernel, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
  CUlibrary own = nullptr;
  EXPECT_OK(cuKernelGetLibrary(&own, kernel));
  EXPECT_TRUE(own == library);
  OBSERVE("function_query_of_a_kernel",
          cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), 0, &offset, &size));
}

CONTRACT(Library, CountsAndListsItsKernels, "cuda.h:8082 cuLibraryEnumerateKernels") {
  UseDevice();
  const CUlibrary library = LoadLibrary();
  unsigned count = 0;
  ASSERT_OK(cuLibraryGetKernelCount(&count, library));
  EXPECT_EQ(count, 21u);
  std::vector<CUkernel> kernels(count);
  EXPECT_OK(cuLibraryEnumerateKernels(kernels.data(), count, library));
}

CONTRACT(Library, GlobalsHaveAddressAndSize, "cuda.h:8191 cuLibraryGetGlobal") {
  UseDevice();
  const CUlibrary library = LoadLibrary();
  CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
  ASSERT_OK(cuLibraryGetGlobal(&address, &size_bytes, library, "contract_words"));
  EXPECT_EQ(size_bytes, std::size_t{16});
  EXPECT_EQ(ReadWord(address + 8), 33u);
  EXPECT_OK(cuLibraryUnload(library));
}

}  // namespace spillway::contract
