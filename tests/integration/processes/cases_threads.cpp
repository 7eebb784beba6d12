// Threads that start and end, and contexts that end and begin again.
#include <thread>

#include "tests/integration/processes/cases.h"
#include "tests/integration/processes/work.h"

namespace spillway::processes {
namespace {

// A thousand threads in turn, each with its own per-thread default stream.
int ManyThreads(const std::string&) {
  const CUcontext context = Begin();
  Work work;
  for (int i = 0; i < 1000; ++i) {
    std::thread([&] {
      MUST(cuCtxSetCurrent(context));
      MUST(cuMemsetD32Async(work.buffers()[static_cast<std::size_t>(i) % 11],
                            static_cast<unsigned>(i % 11), 64, CU_STREAM_PER_THREAD));
    }).join();
  }
  MUST(cuCtxSynchronize());
  work.Check();
  std::printf("1000 threads\n");
  return 0;
}

int PrimaryContextAnew(const std::string&) {
  for (int i = 0; i < 5; ++i) {
    Begin();
    {
      Work work;
      work.Enqueue(2);
      work.Check();
    }
    Work left_behind;
    left_behind.Enqueue(1);
    MUST(cuDevicePrimaryCtxReset(0));
  }
  std::printf("5 lives\n");
  return 0;
}

// A thread's own context beside the primary one.
int ContextsComeAndGo(const std::string&) {
  const CUcontext primary = Begin();
  Work work(9);
  for (int i = 0; i < 10; ++i) {
    CUcontext context = nullptr;
    CUdeviceptr buffer = 0;
    CUstream stream = nullptr;
    std::uint32_t word = 0;
    MUST(cuCtxCreate(&context, nullptr, 0, 0));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&buffer, 4 * kMiB));
    MUST(cuMemsetD32Async(buffer, 40u + static_cast<unsigned>(i), kMiB, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(&word, buffer + 4 * kMiB - 4, 4));
    if (word != 40u + static_cast<unsigned>(i)) return std::printf("%u\n", word), 1;
    MUST(cuCtxDestroy(context));
    MUST(cuCtxSetCurrent(primary));
    work.Enqueue(1);
  }
  work.Check();
  std::printf("10 contexts\n");
  return 0;
}

}  // namespace

std::vector<Case> ThreadCases() {
  return {{"many_threads", ManyThreads},
          {"primary_context_anew", PrimaryContextAnew},
          {"contexts_come_and_go", ContextsComeAndGo}};
}

}  // namespace spillway::processes
