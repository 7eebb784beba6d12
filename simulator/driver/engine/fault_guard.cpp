#include "simulator/driver/engine/fault_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "simulator/driver/engine/operation.h"

namespace spillway::simulator {
namespace {

struct Guard {
  sigjmp_buf escape;
  volatile std::uintptr_t address = 0;
  volatile int signal = 0;
};

thread_local Guard* volatile active_guard = nullptr;

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL};
struct sigaction previous[std::size(kSignals)];

const struct sigaction& PreviousOf(int signal) {
  return previous[std::find(std::begin(kSignals), std::end(kSignals), signal) - kSignals];
}

CUresult ErrorOf(int signal) {
  if (signal == SIGABRT) return CUDA_ERROR_ASSERT;
  return signal == SIGILL ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_ILLEGAL_ADDRESS;
}

void PassOn(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = PreviousOf(signal);
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
  } else {
    // Returning repeats the access; the default action then ends the process.
    struct sigaction standard = {};
    standard.sa_handler = SIG_DFL;
    sigaction(signal, &standard, nullptr);
  }
}

void OnFault(int signal, siginfo_t* info, void* context) {
  Guard* const guard = active_guard;
  if (guard == nullptr) {
    PassOn(signal, info, context);
    return;
  }
  guard->signal = signal;
  guard->address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  siglongjmp(guard->escape, 1);
}

void InstallHandlers() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = OnFault;
    // SA_NODEFER: otherwise the jump must restore the signal mask, a system call per launch.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (std::size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], &action, &previous[i]);
    return true;
  }();
  (void)installed;
}

// A blocked fault signal ends the process, and threads inherit blocked signals.
void UnblockFaults() {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int signal : kSignals) sigaddset(&faults, signal);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

// The handler cannot use a kernel body's small fiber stack. A thread's existing signal stack stays.
class SignalStack {
 public:
  SignalStack() {
    UnblockFaults();
    stack_t current;
    if (sigaltstack(nullptr, &current) != 0 || (current.ss_flags & SS_DISABLE) == 0) return;
    memory_ = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) return;
    stack_t own = {};
    own.ss_sp = memory_;
    own.ss_size = kBytes;
    sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    munmap(memory_, kBytes);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 << 10;
  void* memory_ = MAP_FAILED;
};

// Separate from the throw: siglongjmp must not leave or enter a frame with destructors.
bool RunCatchingFaults(void (*body)(void*), void* context, Guard& guard) {
  if (sigsetjmp(guard.escape, 0) != 0) {
    active_guard = nullptr;
    return false;
  }
  active_guard = &guard;
  body(context);
  active_guard = nullptr;
  return true;
}

}  // namespace

void RunGuarded(void (*body)(void* context), void* context) {
  InstallHandlers();
  static thread_local SignalStack stack;
  (void)stack;
  Guard guard;
  if (!RunCatchingFaults(body, context, guard)) throw Fault{guard.address, ErrorOf(guard.signal)};
}

}  // namespace spillway::simulator
