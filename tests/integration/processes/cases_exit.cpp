// Ends of processes in every form, with work in flight, and with CUDA calls at exit.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/integration/processes/cases.h"
#include "tests/integration/processes/work.h"

namespace spillway::processes {
namespace {

// Enqueues without end on threads that are never joined.
void StartEndlessWork(int threads) {
  static std::atomic<int> busy = 0;
  const CUcontext context = Begin();
  for (int i = 0; i < threads; ++i) {
    std::thread([context] {
      if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return;
      auto* const work = new Work(4, CU_STREAM_PER_THREAD);
      for (;;) {
        work->Enqueue(1);
        ++busy;
        cuStreamSynchronize(CU_STREAM_PER_THREAD);
      }
    }).detach();
  }
  while (busy < 3 * threads) std::this_thread::yield();
}

int ExitDuringWork(const std::string&) {
  StartEndlessWork(3);
  std::printf("leaving\n");
  std::exit(7);
}

int ReturnDuringWork(const std::string&) {
  StartEndlessWork(3);
  std::printf("leaving\n");
  return 8;
}

int UnderscoreExit(const std::string&) {
  StartEndlessWork(1);
  std::printf("leaving\n");
  std::fflush(stdout);
  _exit(9);
}

void SayQuick() { std::printf("at_quick_exit\n"), std::fflush(stdout); }

int QuickExit(const std::string&) {
  at_quick_exit(SayQuick);
  StartEndlessWork(1);
  std::quick_exit(10);
}

int Abort(const std::string&) {
  StartEndlessWork(1);
  std::abort();
}

int Terminated(const std::string&) {
  Begin();
  Work work;
  work.Enqueue(3);
  work.Check();
  raise(SIGTERM);
  return 0;
}

// Exits from a second thread, while the main thread waits for the device.
int ExitFromThread(const std::string&) {
  const CUcontext context = Begin();
  Work work;
  work.Enqueue(20);
  std::thread([context] {
    cuCtxSetCurrent(context);
    std::exit(11);
  }).detach();
  for (;;) {
    cuMemsetD32Async(work.buffers().front(), 1, 16, nullptr);
    cuCtxSynchronize();
  }
}

// CUDA calls from handlers and destructors at exit. `answers` tells whether they worked as usual;
// once the driver shuts down, CUDA_ERROR_DEINITIALIZED passes through.
CUdeviceptr left_over = 0;

void CallAtExit(const char* who) {
  CUdeviceptr address = 0;
  std::size_t free_bytes = 0, total_bytes = 0;
  const CUresult answers[] = {
      cuMemsetD32(left_over, 5, 4), cuMemAlloc(&address, 4 * kMiB),          cuMemFree(address),
      cuCtxSynchronize(),           cuMemGetInfo(&free_bytes, &total_bytes), cuMemFree(left_over)};
  std::printf("%s:", who);
  for (const CUresult answer : answers) std::printf(" %d", answer);
  std::printf("\n");
  std::fflush(stdout);
}

struct CallsWhenDestroyed {
  const char* who = nullptr;
  ~CallsWhenDestroyed() {
    if (who != nullptr) CallAtExit(who);
  }
};
CallsWhenDestroyed at_static_destruction;

CUdeviceptr FilledBuffer() {
  CUdeviceptr address = 0;
  MUST(cuMemAlloc(&address, 4 * kMiB));
  MUST(cuMemsetD32(address, 1, kMiB));
  return address;
}

int StaticDestructor(const std::string&) {
  at_static_destruction.who = "static destructor";
  Begin();
  left_over = FilledBuffer();
  return 0;
}

int HandlerBeforeFirstCall(const std::string&) {
  std::atexit([] { CallAtExit("handler set before the first call"); });
  Begin();
  left_over = FilledBuffer();
  return 0;
}

int HandlerAfterFirstCall(const std::string&) {
  Begin();
  left_over = FilledBuffer();
  std::atexit([] { CallAtExit("handler set after the first call"); });
  return 0;
}

// The program's very first CUDA call happens at exit.
int FirstCallAtExit(const std::string&) {
  std::atexit([] {
    Begin();
    left_over = FilledBuffer();
    CallAtExit("first call at exit");
  });
  return 0;
}

int ThreadLocalDestructor(const std::string&) {
  const CUcontext context = Begin();
  left_over = FilledBuffer();
  std::thread([context] {
    thread_local CallsWhenDestroyed at_thread_end;
    MUST(cuCtxSetCurrent(context));
    at_thread_end.who = "thread's destructor";
  }).join();
  return 0;
}

}  // namespace

std::vector<Case> ExitCases() {
  return {{"exit_during_work", ExitDuringWork},
          {"return_during_work", ReturnDuringWork},
          {"underscore_exit", UnderscoreExit},
          {"quick_exit", QuickExit},
          {"abort", Abort},
          {"terminated", Terminated},
          {"exit_from_thread", ExitFromThread},
          {"static_destructor", StaticDestructor},
          {"handler_before_first_call", HandlerBeforeFirstCall},
          {"handler_after_first_call", HandlerAfterFirstCall},
          {"first_call_at_exit", FirstCallAtExit},
          {"thread_local_destructor", ThreadLocalDestructor}};
}

}  // namespace spillway::processes
