// Forks before, after and during CUDA use, and all other ways to start a process.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/integration/processes/cases.h"
#include "tests/integration/processes/work.h"

extern char** environ;

namespace spillway::processes {
namespace {

void Compute() {
  Begin();
  Work work;
  work.Enqueue(3);
  work.Check();
}

int Fail(const char* what) {
  std::printf("%s\n", what);
  return 1;
}

// Runs `body` in a forked child; returns how it ended.
int StatusOf(const std::function<void()>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::fflush(stdout);
    std::_Exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

void PrintAnswers(CUdeviceptr inherited) {
  CUcontext context = nullptr;
  CUdeviceptr address = inherited;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  std::size_t bytes = 0, total_bytes = 0;
  std::uint32_t word = 0;
  unsigned type = 0;
  int count = 0;
  std::printf("init %d count %d current %d\n", cuInit(0), cuDeviceGetCount(&count),
              cuCtxGetCurrent(&context));
  std::printf("retain %d total %d info %d\n", cuDevicePrimaryCtxRetain(&context, 0),
              cuDeviceTotalMem(&bytes, 0), cuMemGetInfo(&bytes, &total_bytes));
  std::printf("read %d set %d type %d range %d\n", cuMemcpyDtoH(&word, inherited, 4),
              cuMemsetD32(inherited, 7, 1),
              cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inherited),
              cuMemGetAddressRange(&address, &bytes, inherited));
  std::printf("alloc %d async %d free %d\n", cuMemAlloc(&address, 4 * kMiB),
              cuMemAllocAsync(&address, 4 * kMiB, nullptr), cuMemFree(inherited));
  std::printf("stream %d event %d wait %d\n", cuStreamCreate(&stream, 0), cuEventCreate(&event, 0),
              cuCtxSynchronize());
}

int ForkBefore(const std::string&) {
  const int status = StatusOf(Compute);
  Compute();
  std::printf("child %d\n", status);
  return 0;
}

int ForkAfter(const std::string&) {
  Begin();
  Work work;
  work.Enqueue(2);
  const int status = StatusOf([&] { PrintAnswers(work.buffers().front()); });
  work.Enqueue(2);
  work.Check();
  std::printf("child %d\n", status);
  return 0;
}

// A child of a child, where only the first process has used CUDA.
int ForkInChild(const std::string&) {
  Begin();
  Work work;
  work.Enqueue(1);
  const int status = StatusOf([&] {
    const int inner = StatusOf([&] { PrintAnswers(work.buffers().back()); });
    std::printf("inner %d\n", inner);
  });
  work.Check();
  std::printf("outer %d\n", status);
  return 0;
}

// The intermediate processes have not used CUDA, so each level is served normally.
int ForkChainBefore(const std::string&) {
  const int status = StatusOf([] {
    const int inner = StatusOf(Compute);
    Compute();
    std::printf("inner %d\n", inner);
  });
  std::printf("outer %d\n", status);
  return 0;
}

int ForkExec(const std::string& self) {
  Begin();
  Work work;
  work.Enqueue(2);
  const int status = StatusOf([&] {
    execl(self.c_str(), self.c_str(), "compute", nullptr);
    std::_Exit(127);
  });
  work.Check();
  std::printf("child %d\n", status);
  return 0;
}

int VforkExec(const std::string& self) {
  Begin();
  Work work;
  work.Enqueue(2);
  const pid_t child = vfork();
  if (child == 0) {
    execl(self.c_str(), self.c_str(), "compute", nullptr);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  work.Enqueue(2);
  work.Check();
  std::printf("child %d\n", status);
  return 0;
}

int PosixSpawn(const std::string& self) {
  Begin();
  Work work;
  work.Enqueue(2);
  std::string path = self, name = "compute";
  char* arguments[] = {path.data(), name.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, path.c_str(), nullptr, nullptr, arguments, environ) != 0)
    return Fail("posix_spawn");
  int status = -1;
  waitpid(child, &status, 0);
  work.Check();
  std::printf("child %d\n", status);
  return 0;
}

// The parent loads everything without using CUDA, and each worker initialises it.
int PreFork(const std::string&) {
  constexpr int kWorkers = 4;
  pid_t workers[kWorkers];
  for (pid_t& worker : workers) {
    worker = fork();
    if (worker != 0) continue;
    Compute();
    std::_Exit(0);
  }
  int ended_well = 0;
  for (pid_t worker : workers) {
    int status = -1;
    waitpid(worker, &status, 0);
    ended_well += status == 0;
  }
  std::printf("%d workers\n", ended_well);
  return 0;
}

// Threads take every lock again and again while hundreds of children are forked.
int ForkStorm(const std::string&) {
  constexpr int kThreads = 3, kChildren = 300;
  const CUcontext context = Begin();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      MUST(cuCtxSetCurrent(context));
      Work work(4, CU_STREAM_PER_THREAD);
      while (!stop) {
        work.Enqueue(1);
        work.Check();
      }
    });
  }
  int refused = 0;
  for (int i = 0; i < kChildren; ++i) {
    const int status = StatusOf([] {
      CUdeviceptr address = 0;
      const bool silent = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                          cuMemAlloc(&address, kMiB) == CUDA_ERROR_NOT_INITIALIZED;
      std::_Exit(silent ? 0 : 1);
    });
    refused += status == 0;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("%d of %d children were refused\n", refused, kChildren);
  return 0;
}

// Whatever locks the planning thread holds at a fork, every kind of child must end: one that leaves
// at once, exits, allocates, or becomes another program.
int ForkWhilePlanning(const std::string&) {
  constexpr int kRounds = 24, kChildrenPerRound = 6;
  Begin();
  Work work;
  int ended_well = 0;
  for (int i = 0; i < kRounds * kChildrenPerRound; ++i) {
    if (i % kChildrenPerRound == 0) work.Enqueue(1);
    const int status = StatusOf([i] {
      if (i % 4 == 1) std::exit(0);
      if (i % 4 == 2) std::string(kMiB, 'x').shrink_to_fit();
      if (i % 4 == 3) execl("/bin/true", "true", nullptr);
    });
    ended_well += status == 0;
  }
  work.Check();
  std::printf("%d of %d children ended well\n", ended_well, kRounds * kChildrenPerRound);
  return 0;
}

int JustCompute(const std::string&) {
  Compute();
  std::printf("computed\n");
  return 0;
}

}  // namespace

std::vector<Case> ForkCases() {
  return {{"compute", JustCompute},
          {"fork_before", ForkBefore},
          {"fork_after", ForkAfter},
          {"fork_in_child", ForkInChild},
          {"fork_chain", ForkChainBefore},
          {"fork_exec", ForkExec},
          {"vfork_exec", VforkExec},
          {"posix_spawn", PosixSpawn},
          {"pre_fork", PreFork},
          {"fork_storm", ForkStorm},
          {"fork_while_planning", ForkWhilePlanning}};
}

}  // namespace spillway::processes
