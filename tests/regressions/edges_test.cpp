// Unusual arguments, long-running programs and report files.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using EdgesTest = JobTest;

// Here the end belonged to no allocation.
TEST_F(EdgesTest, ZeroBytesAtTheEndOfABufferAreNoError) {
  Start();
  const CUdeviceptr buffer = Filled(8 * kMiB, 1), other = Filled(8 * kMiB, 2);
  const CUdeviceptr end = buffer + 8 * kMiB;
  char byte = 0;
  EXPECT_EQ(cuMemsetD8(end, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(end, &byte, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(&byte, end, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoD(end, other, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoD(other + 8 * kMiB, buffer, 0), CUDA_SUCCESS);
}

// The descriptor's memory types decide which of its addresses count. A leftover address counted as
// a use of freed memory.
TEST_F(EdgesTest, UnusedAddressOfACopyDescriptorMayBeStale) {
  Start();
  const CUdeviceptr stale = Filled(8 * kMiB, 1), target = Filled(8 * kMiB, 2);
  ASSERT_EQ(cuMemFree(stale), CUDA_SUCCESS);
  std::vector<std::uint32_t> words(1024, 7);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcDevice = stale;
  copy.srcHost = words.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = target;
  copy.WidthInBytes = 4096;
  copy.Height = 1;
  EXPECT_EQ(cuMemcpy2D(&copy), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(target, 4096, 7));
}

// The batch's copy to the host was overlooked. The whole buffer counted as overwritten, and was
// restored without the bytes that this copy reads. Both copies move equal bytes, so their order
// does not matter.
TEST_F(EdgesTest, BatchThatReadsAndOverwritesABufferReadsItsOldBytes) {
  setenv("SPILLWAY_PARK", "off", 1);
  Start();
  constexpr size_t kBytes = 8 * kMiB;
  const CUdeviceptr buffer = Filled(kBytes, 7);
  const auto others = FilledBuffers(8, kBytes);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  std::vector<std::uint32_t> read(kBytes / 4, 1), same(kBytes / 4, 7);

  CUdeviceptr to[] = {reinterpret_cast<CUdeviceptr>(read.data()), buffer};
  CUdeviceptr from[] = {buffer, reinterpret_cast<CUdeviceptr>(same.data())};
  size_t sizes[] = {kBytes, kBytes}, first = 0;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  ASSERT_EQ(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);

  EXPECT_EQ(read, same);
  EXPECT_TRUE(IsAll(buffer, kBytes, 7));
}

// The end of a read that is far too long wrapped around to below the allocation's end.
TEST_F(EdgesTest, OversizedReadOfAnEvictedBufferIsRefused) {
  Start();
  const auto buffers = FilledBuffers(12, 8 * kMiB);
  char byte = 0;
  EXPECT_NE(cuMemcpyDtoH(&byte, buffers[0] + 4096, ~size_t{0} - 100), CUDA_SUCCESS);
}

// The stream itself wrote and awaited a word in evicted memory, which no hook saw.
TEST_F(EdgesTest, StreamMemoryOperationsReachEvictedMemory) {
  Start();
  const auto buffers = FilledBuffers(12, 8 * kMiB);
  EXPECT_EQ(cuStreamWriteValue32(nullptr, buffers[0], 42, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitValue32(nullptr, buffers[1], 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(buffers[0], 4, 42));
}

struct __attribute__((packed)) Packed {
  std::uint32_t value;
  std::uint32_t* target;
};
void StorePacked(const simulator::LaunchShape&, void* const* arguments) {
  Packed packed;
  std::memcpy(&packed, arguments[0], sizeof packed);
  *packed.target = packed.value;
}
constexpr simulator::KernelParameter kPackedParameter[] = {{0, sizeof(Packed)}};
SPILLWAY_ONE_KERNEL(kPackedImage, "store_packed", StorePacked, nullptr, 1, kPackedParameter);

// A pointer there may be aligned to four bytes only, between the scanned words.
TEST_F(EdgesTest, PointersInPackedStructsAreFound) {
  Start();
  const CUfunction store = Kernel(&kPackedImage, "store_packed");
  const auto buffers = FilledBuffers(12, 8 * kMiB);
  Packed packed{42, reinterpret_cast<std::uint32_t*>(buffers[0])};
  void* parameters[] = {&packed};
  ASSERT_EQ(Launch(store, nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(buffers[0], 4, 42));
}

size_t ResidentBytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void Nothing(const simulator::LaunchShape&, void* const*) {}
SPILLWAY_ONE_KERNEL(kBareImage, "bare", Nothing, nullptr, 0, nullptr);

// A program that compiles at run time loads and unloads modules all its life. Each left a whole
// table behind.
TEST_F(EdgesTest, LoadingAndUnloadingModulesForLongKeepsMemoryLevel) {
  Start();
  Filled(4 * kMiB, 1);
  const auto once = [] {
    CUmodule module;
    CUfunction function;
    ASSERT_EQ(cuModuleLoadData(&module, &kBareImage), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&function, module, "bare"), CUDA_SUCCESS);
    ASSERT_EQ(Launch(function, nullptr, std::vector<void*>(1).data()), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  };
  once();
  const size_t before = ResidentBytes();
  for (int i = 0; i < 1000; ++i) once();
  EXPECT_LT(ResidentBytes() - before, 32 * kMiB);
}

// Each operation on a thread's own default stream is marked by an event. A program that waits only
// by its own events never released them.
TEST_F(EdgesTest, PerThreadStreamAwaitedByEventsKeepsMemoryLevel) {
  Start();
  const CUdeviceptr buffer = Filled(4 * kMiB, 1);
  CUevent event;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  const auto some = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (int k = 0; k < 100; ++k)
        ASSERT_EQ(cuMemsetD8Async(buffer, 1, 64, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
      ASSERT_EQ(cuEventRecord(event, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
      ASSERT_EQ(cuEventSynchronize(event), CUDA_SUCCESS);
    }
  };
  some(10);
  const size_t before = ResidentBytes();
  some(300);
  EXPECT_LT(ResidentBytes() - before, 4 * kMiB);
}

// The driver says "unknown" without an error (cudaPointerGetAttributes: unregistered). The query
// was refused.
TEST_F(EdgesTest, AttributesOfFreedMemoryAreUnknown) {
  Start();
  const CUdeviceptr freed = Filled(8 * kMiB, 1);
  ASSERT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  unsigned int type = 7;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* answers[] = {&type};
  EXPECT_EQ(cuPointerGetAttributes(1, attributes, answers, freed), CUDA_SUCCESS);
  EXPECT_EQ(type, 0u);
}

extern "C" CUresult cuMemsetD32Async_ptsz(CUdeviceptr, unsigned int, size_t, CUstream);

void Increment(const simulator::LaunchShape&, void* const* arguments) {
  ++**static_cast<std::uint32_t* const*>(arguments[0]);
}
simulator::KernelCost Seconds(const simulator::LaunchShape&, void* const*) {
  return {uint64_t{1} << 58, 0};
}
constexpr simulator::KernelParameter kPointer[] = {{0, 8}};
SPILLWAY_ONE_KERNEL(kSlowImage, "slow_increment", Increment, Seconds, 1, kPointer);

// A thread's number filled sixteen bits of its default stream's name. The 65,537th thread's stream
// was mistaken for the first one's, and so was the completion of its work.
TEST_F(EdgesTest, DefaultStreamsOfManyThreadsAreDistinguished) {
  Start();
  const CUfunction slow = Kernel(&kSlowImage, "slow_increment");
  const CUdeviceptr small = Filled(4 * kMiB, 1);
  CUdeviceptr used = Filled(16 * kMiB, 1);
  ASSERT_EQ(cuMemsetD32Async_ptsz(small, 1, 1, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const auto short_lives = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::thread([&] {
        cuCtxSetCurrent(context_);
        cuMemsetD32Async_ptsz(small, 1, 1, nullptr);
        cuStreamSynchronize(CU_STREAM_PER_THREAD);
      }).join();
    }
  };
  short_lives(65'535);
  void* parameters[] = {&used};
  ASSERT_EQ(Launch(slow, CU_STREAM_PER_THREAD, parameters), CUDA_SUCCESS);
  short_lives(3);

  ASSERT_EQ(cuMemFree(used), CUDA_SUCCESS);
  Filled(58 * kMiB, 7);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(Statistics("illegal_accesses"), 0u);
}

// While kernels are unknown, a new range without memory is mapped onto the host. That was done
// within the budget, too, when the free memory was still in use by earlier work. The range's
// meaningless bytes then went over the link.
TEST_F(EdgesTest, WithinTheBudgetNewMemoryAwaitsFreedMemory) {
  Start();
  const CUfunction slow = Kernel(&kSlowImage, "slow_increment");
  Filled(48 * kMiB, 1);
  CUdeviceptr freed = Filled(16 * kMiB, 1);
  void* parameters[] = {&freed};
  ASSERT_EQ(Launch(slow, nullptr, parameters), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  const auto before = Statistics("h2d_bytes");

  Filled(8 * kMiB, 2);
  Filled(6 * kMiB, 2);
  Filled(64 * 1024, 2);  // for a slab

  EXPECT_EQ(Statistics("h2d_bytes"), before);
  EXPECT_EQ(Statistics("d2h_bytes"), 0u);
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
}

std::string TemporaryPath(const char* name) {
  return testing::TempDir() + "spillway_" + std::to_string(getpid()) + "_" + name;
}
// In a process of its own (report_child.cpp); returns its exit status.
int RunChild(const char* task, const std::string& environment) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return -1;
  const std::string folder = std::string(self).substr(0, std::string(self).rfind('/'));
  const std::string command = "timeout 5 env " + environment + " " + folder +
                              "/regression_report_child " + task + " >/dev/null 2>&1";
  return system(command.c_str());
}
std::string Text(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The report and the stored peak covered only the second life.
TEST_F(EdgesTest, ReportCoversTheLifeBeforeAReset) {
  const std::string report = TemporaryPath("report"), peak = TemporaryPath("peak");
  ASSERT_EQ(RunChild("reset", "SPILLWAY_REPORT=" + report + " SPILLWAY_PEAK_FILE=" + peak), 0);
  EXPECT_NE(Text(report).find("\"wanted_peak_bytes\": 41943040"), std::string::npos)
      << Text(report);
  EXPECT_EQ(Text(peak), "41943040\n");
  unlink(report.c_str());
  unlink(peak.c_str());
}

// Memory freed before its texture was subtracted twice from the unmovable bytes, which became
// negative.
TEST_F(EdgesTest, MemoryFreedBeforeItsTextureIsCountedOnce) {
  const std::string report = TemporaryPath("report");
  ASSERT_EQ(RunChild("free-before-texture", "SPILLWAY_REPORT=" + report), 0);
  EXPECT_NE(Text(report).find("\"texture\": 8388608"), std::string::npos) << Text(report);
  unlink(report.c_str());
}

// A device or pipe (/dev/null, /dev/stderr) was replaced by a file.
TEST_F(EdgesTest, ReportDoesNotReplaceAPipe) {
  const std::string pipe = TemporaryPath("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_EQ(RunChild("allocate", "SPILLWAY_REPORT=" + pipe), 0);
  struct stat status;
  ASSERT_EQ(stat(pipe.c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  char text[4096];
  EXPECT_GT(read(reader, text, sizeof text), 0);
  close(reader);
  unlink(pipe.c_str());
}

// Programs call exit() in a handler of SIGINT or SIGTERM. If that interrupted a hook, the program
// hung: the report at exit needed the lock that the interrupted thread held.
TEST_F(EdgesTest, ExitInASignalHandlerTerminates) {
  for (int i = 0; i < 40; ++i) ASSERT_EQ(RunChild("exit-in-handler", ""), 0) << "run " << i;
}

// A stream waited for a word from the program, and completion was queried only behind that wait.
// Memory from before the wait could not be evicted. The program, which was to write the word next,
// waited for memory for ever.
TEST_F(EdgesTest, MemoryUsedBeforeAStreamsWaitForAWordIsEvictable) {
  Start();
  const CUdeviceptr word = Filled(2 * kMiB, 0), used = Filled(40 * kMiB, 1);
  CUstream waiting, other;
  ASSERT_EQ(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(used, 7, 10 * kMiB, waiting), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitValue32(waiting, word, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);

  const CUdeviceptr more = Allocated(40 * kMiB);
  EXPECT_EQ(cuMemsetD32Async(more, 3, 10 * kMiB, other), CUDA_SUCCESS);

  ASSERT_EQ(cuStreamWriteValue32(other, word, 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(used, 40 * kMiB, 7));
  EXPECT_TRUE(IsAll(more, 40 * kMiB, 3));
}

// A host function that waits for the program is such a wait too, but was not marked. The program
// waited for memory that the stream had long finished with, and so never did what the function
// waited for.
TEST_F(EdgesTest, MemoryUsedBeforeAWaitingHostFunctionIsEvictable) {
  Start();
  const CUdeviceptr used = Filled(40 * kMiB, 1);
  CUstream waiting, other;
  ASSERT_EQ(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  std::atomic<bool> may_go_on{false};
  const auto wait = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  ASSERT_EQ(cuMemsetD32Async(used, 7, 10 * kMiB, waiting), CUDA_SUCCESS);
  ASSERT_EQ(cuLaunchHostFunc(waiting, wait, &may_go_on), CUDA_SUCCESS);

  const CUdeviceptr more = Allocated(40 * kMiB);
  EXPECT_EQ(cuMemsetD32Async(more, 3, 10 * kMiB, other), CUDA_SUCCESS);

  may_go_on = true;
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(used, 40 * kMiB, 7));
  EXPECT_TRUE(IsAll(more, 40 * kMiB, 3));
}

}  // namespace
}  // namespace spillway::regressions
