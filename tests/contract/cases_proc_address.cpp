// cuGetProcAddress in both ABIs: the answer to a (name, version, flags) request.
#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/contract/device.h"
#include "tests/support/paths.h"

namespace spillway::contract {
namespace {

using GetProcAddress2 = CUresult (*)(const char*, void**, int, cuuint64_t,
                                     CUdriverProcAddressQueryResult*);
using GetProcAddress1 = CUresult (*)(const char*, void**, int, cuuint64_t);

void* Symbol(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_TRUE(driver != nullptr);
  return dlsym(driver, name);
}

GetProcAddress2 NewEntryPoint() {
  const auto entry_point = reinterpret_cast<GetProcAddress2>(Symbol("cuGetProcAddress_v2"));
  ASSERT_TRUE(entry_point != nullptr);
  return entry_point;
}

struct Answer {
  CUresult result;
  void* pointer;
  CUdriverProcAddressQueryResult status;
};

Answer Ask(const char* name, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  Answer answer{CUDA_ERROR_UNKNOWN, &answer, CU_GET_PROC_ADDRESS_SUCCESS};
  answer.result = NewEntryPoint()(name, &answer.pointer, version, flags, &answer.status);
  return answer;
}

void ExpectSymbol(const char* name, int version, cuuint64_t flags, const char* symbol) {
  const Answer answer = Ask(name, version, flags);
  EXPECT_OK(answer.result);
  if (answer.pointer == Symbol(symbol) && answer.pointer) return;
  ReportFailure(__FILE__, __LINE__,
                std::string(name) + "@" + std::to_string(version) + " flags " +
                    std::to_string(flags) + " is not " + symbol);
}

constexpr cuuint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

}  // namespace

CONTRACT(ProcAddress, RequestGetsTheAbiOfItsVersion,
         "cuda.h:24347 cuGetProcAddress; cudaTypedefs.h") {
  ExpectSymbol("cuMemAlloc", 2000, 0, "cuMemAlloc");
  ExpectSymbol("cuMemAlloc", 3010, 0, "cuMemAlloc");
  ExpectSymbol("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
  ExpectSymbol("cuMemAlloc", 12000, 0, "cuMemAlloc_v2");
  ExpectSymbol("cuCtxCreate", 3020, 0, "cuCtxCreate_v2");
  ExpectSymbol("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
  ExpectSymbol("cuStreamGetCaptureInfo", 10010, 0, "cuStreamGetCaptureInfo");
  ExpectSymbol("cuStreamGetCaptureInfo", 11030, 0, "cuStreamGetCaptureInfo_v2");
  ExpectSymbol("cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture");
  ExpectSymbol("cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2");
  ExpectSymbol("cuDevicePrimaryCtxRelease", 11000, 0, "cuDevicePrimaryCtxRelease_v2");
}

CONTRACT(ProcAddress, PerThreadFlagGetsThePerThreadVariant, "cuda.h:24347 cuGetProcAddress") {
  ExpectSymbol("cuLaunchKernel", 7000, kPerThread, "cuLaunchKernel_ptsz");
  ExpectSymbol("cuLaunchKernel", 7000, kLegacy, "cuLaunchKernel");
  ExpectSymbol("cuLaunchKernel", 7000, 0, "cuLaunchKernel");
  ExpectSymbol("cuMemcpyHtoD", 7000, kPerThread, "cuMemcpyHtoD_v2_ptds");
  ExpectSymbol("cuMemcpyHtoD", 7000, kLegacy, "cuMemcpyHtoD_v2");
}

CONTRACT(ProcAddress, PerThreadFlagWithoutAVariantGetsThePlainFunction,
         "cuda.h:24347 cuGetProcAddress") {
  ExpectSymbol("cuMemAlloc", 12000, kPerThread, "cuMemAlloc_v2");
  ExpectSymbol("cuInit", 12000, kPerThread, "cuInit");
}

CONTRACT(ProcAddress, FindsItselfInBothAbis, "reference/interposition.md section 1") {
  ExpectSymbol("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
  ExpectSymbol("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
}

CONTRACT(ProcAddress, OldAbiTakesFourArguments, "cuda.h:24347 cuGetProcAddress") {
  const auto old_entry = reinterpret_cast<GetProcAddress1>(Symbol("cuGetProcAddress"));
  ASSERT_TRUE(old_entry != nullptr);
  void* pointer = nullptr;
  EXPECT_OK(old_entry("cuMemAlloc", &pointer, 3020, 0));
  EXPECT_TRUE(pointer == Symbol("cuMemAlloc_v2"));
  pointer = &pointer;
  OBSERVE("old_abi_missing_name", old_entry("cuNoSuchFunction", &pointer, 12000, 0));
  OBSERVE("old_abi_missing_name_pointer_is_null", pointer == nullptr);
}

CONTRACT(ProcAddress, NeedsNoInit,
         "reference/interposition.md section 1: libcudart asks before cuInit") {
  EXPECT_OK(Ask("cuInit", 12000).result);
}

CONTRACT(ProcAddress, MissingNameIsNotFound, "cuda.h:24347 cuGetProcAddress") {
  const Answer answer = Ask("cuNoSuchFunction", 12000);
  EXPECT_TRUE(answer.pointer == nullptr);
  EXPECT_EQ(static_cast<int>(answer.status),
            static_cast<int>(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
  OBSERVE("missing_name_result", answer.result);
  void* pointer = &pointer;
  OBSERVE("missing_name_result_without_status",
          NewEntryPoint()("cuNoSuchFunction", &pointer, 12000, 0, nullptr));
  OBSERVE("missing_name_pointer_is_null_without_status", pointer == nullptr);
}

CONTRACT(ProcAddress, OlderThanTheFunctionIsNotSufficient, "cuda.h:24347 cuGetProcAddress") {
  const Answer answer = Ask("cuMemAllocAsync", 11000);
  EXPECT_TRUE(answer.pointer == nullptr);
  EXPECT_EQ(static_cast<int>(answer.status),
            static_cast<int>(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
  OBSERVE("older_version_result", answer.result);
}

CONTRACT(ProcAddress, NewerThanTheDriverIsInvalid, "cuda.h:24347 cuGetProcAddress") {
  const Answer answer = Ask("cuMemAlloc", 99000);
  EXPECT_EQ(answer.result, CUDA_ERROR_INVALID_VALUE);
}

CONTRACT(ProcAddress, EmptyNameAsLibcudartRequests, "reference/interposition.md section 1") {
  const Answer answer = Ask("", 0);
  OBSERVE("empty_name_result", answer.result);
  OBSERVE("empty_name_status", static_cast<int>(answer.status));
  OBSERVE("empty_name_pointer_is_null", answer.pointer == nullptr);
}

CONTRACT(ProcAddress, SuffixedNameIsObserved,
         "cuda.h:24347 cuGetProcAddress: `symbol` is a base name") {
  const Answer answer = Ask("cuMemAlloc_v2", 12000);
  OBSERVE("suffixed_name_result", answer.result);
  OBSERVE("suffixed_name_status", static_cast<int>(answer.status));
  OBSERVE("unknown_flags_result", Ask("cuInit", 12000, 8).result);
}

// Pointer routing (docs/architecture.md) relies on this.
CONTRACT(ProcAddress, AnswersAreExportedSymbols,
         "docs/architecture.md; fixtures/cudart13_requests.txt") {
  const std::string file = test::Fixture("cudart13_requests.txt");
  std::ifstream requests(file);
  SKIP_UNLESS(requests.good(), "no " + file);
  int answered = 0, exported = 0, missing = 0;
  for (std::string line; std::getline(requests, line);) {
    char name[128] = "";
    int version = 0;
    unsigned long flags = 0;
    if (std::sscanf(line.c_str(), "%127s ver=%d flags=%lu", name, &version, &flags) != 3) continue;
    const Answer answer = Ask(name, version, flags);
    missing += !answer.pointer;
    if (!answer.pointer) continue;
    ++answered;
    Dl_info info{};
    exported += dladdr(answer.pointer, &info) && info.dli_saddr == answer.pointer;
  }
  OBSERVE("requests_answered", answered);
  OBSERVE("answers_that_are_exported_symbols", exported);
  OBSERVE("requests_not_found", missing);
  EXPECT_TRUE(answered > 300);
  EXPECT_EQ(exported, answered);
}

}  // namespace spillway::contract
