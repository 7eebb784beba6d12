// What a process must keep besides CUDA: signals, exceptions, environment, loaded libraries.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

#include "tests/integration/processes/cases.h"
#include "tests/integration/processes/work.h"

namespace spillway::processes {
namespace {

std::atomic<int> ticks = 0;
std::atomic<int> ticks_on_own_stack = 0;
char handler_stack[64 << 10];

void Tick(int) {
  char here;
  ++ticks;
  if (&here >= handler_stack && &here < handler_stack + sizeof handler_stack) ++ticks_on_own_stack;
}

// A signal arrives a thousand times a second, on its own stack, while memory moves.
int SignalStorm(const std::string&) {
  const stack_t stack = {.ss_sp = handler_stack, .ss_flags = 0, .ss_size = sizeof handler_stack};
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = Tick;
  action.sa_flags = SA_ONSTACK;  // and no SA_RESTART: system calls are interrupted
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  Begin();
  for (int i = 0; i < 12 || ticks < 50; ++i) {
    Work work;
    work.Enqueue(2);
    work.Check();
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("interrupted, on its own stack: %d\n", ticks == ticks_on_own_stack);
  return 0;
}

// An interrupted system call of the program still returns EINTR to the program.
int InterruptedCalls(const std::string&) {
  struct sigaction action = {};
  action.sa_handler = Tick;
  sigaction(SIGALRM, &action, nullptr);
  Begin();
  Work work;
  work.Enqueue(1);
  work.Check();
  const itimerval soon = {{0, 0}, {0, 20'000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
  const timespec long_time = {5, 0};
  const int result = nanosleep(&long_time, nullptr);
  std::printf("interrupted: %d\n", result == -1 && errno == EINTR);
  return 0;
}

std::string Dispositions() {
  std::string text;
  for (int number = 1; number < 32; ++number) {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    text += action.sa_handler == SIG_DFL ? 'd' : action.sa_handler == SIG_IGN ? 'i' : 'h';
  }
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  for (int number = 1; number < 32; ++number) text += sigismember(&blocked, number) ? 'b' : '-';
  stack_t stack = {};
  sigaltstack(nullptr, &stack);
  return text + ((stack.ss_flags & SS_DISABLE) != 0 ? " no stack" : " a stack");
}

int CheckSignalsUnchanged(const std::string&) {
  signal(SIGPIPE, SIG_IGN);
  Begin();
  Work work;
  work.Enqueue(2);
  work.Check();
  std::printf("%s\n", Dispositions().c_str());
  return 0;
}

int Throw(int depth) {
  if (depth == 0) throw std::runtime_error("as intended");
  return Throw(depth - 1) + 1;
}

void ThrowOften() {
  constexpr int kThrows = 2000;
  for (int i = 0; i < kThrows; ++i) {
    try {
      Throw(10);
    } catch (const std::runtime_error&) {
    }
  }
}

int Exceptions(const std::string&) {
  Begin();
  try {
    Work work;
    work.Enqueue(2);
    throw std::logic_error("out of the middle of work");
  } catch (const std::logic_error& error) {
    std::printf("caught: %s\n", error.what());
  }
  Work work;
  work.Enqueue(2);
  work.Check();
  ThrowOften();
  return 0;
}

// A library with kernels is unloaded and loaded again, with other parameter layouts.
int Dlclose(const std::string& self) {
  Begin();
  Work work;
  const std::string folder = self.substr(0, self.rfind('/') + 1);
  for (int i = 0; i < 40; ++i) {
    const std::string path =
        folder + (i % 2 == 0 ? "libprocess_plugin_a.so" : "libprocess_plugin_b.so");
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::printf("%s\n", dlerror()), 1;
    const auto run = reinterpret_cast<CUresult (*)(CUdeviceptr, std::uint32_t)>(
        dlsym(library, "RunPluginKernel"));
    MUST(run(work.buffers()[static_cast<std::size_t>(i) % 11], 0));
    work.Enqueue(1);
    MUST(cuCtxSynchronize());
    if (dlclose(library) != 0) return 1;
  }
  work.Check();
  std::printf("all well\n");
  return 0;
}

int EditedEnvironment(const std::string&) {
  setenv("SPILLWAY_BUDGET", "1099511627776", 1);
  unsetenv("SPILLWAY_REPORT");
  Begin();
  Work work;
  work.Enqueue(2);
  work.Check();
  std::size_t free_bytes = 0, total_bytes = 0;
  MUST(cuMemGetInfo(&free_bytes, &total_bytes));
  std::fprintf(stderr, "total_bytes %zu\n", total_bytes);
  return 0;
}

// A child gets the edited environment, as long as it still loads the library.
int EditedForChild(const std::string& self) {
  setenv("SPILLWAY_BUDGET", "1099511627776", 1);
  execl(self.c_str(), self.c_str(), "edited_environment", nullptr);
  return 127;
}

}  // namespace

std::vector<Case> SurroundingsCases() {
  return {{"signal_storm", SignalStorm},
          {"interrupted_calls", InterruptedCalls},
          {"signals_stay", CheckSignalsUnchanged},
          {"exceptions", Exceptions},
          {"dlclose", Dlclose},
          {"edited_environment", EditedEnvironment},
          {"edited_for_child", EditedForChild}};
}

}  // namespace spillway::processes
