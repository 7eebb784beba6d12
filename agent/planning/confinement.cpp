#include "agent/planning/confinement.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "protocol/message.h"

namespace spillway::agent {
namespace {

// A sanitizer's shadow memory exceeds any limit, and its reports need more system calls.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which calls a planning process may make is not known for this machine"
#endif

// For computing: read and write open files, memory, the clock, exit. No fstat, since the same call
// accepts paths.
constexpr std::array kAllowedCalls = {
    SYS_read,         SYS_pread64,    SYS_write,          SYS_lseek,        SYS_close,
    SYS_mmap,         SYS_munmap,     SYS_mremap,         SYS_mprotect,     SYS_madvise,
    SYS_brk,          SYS_futex,      SYS_getpid,         SYS_gettid,       SYS_getrandom,
    SYS_exit,         SYS_exit_group, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigaction,
    SYS_clock_gettime};

constexpr unsigned kFirstArgument = offsetof(seccomp_data, args);  // its lower half
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "where the lower half is");

bool SetLimit(__rlimit_resource what, int64_t most) {
  const rlimit limit{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  return setrlimit(what, &limit) == 0;
}

// The OOM killer takes this process first. The write may be forbidden.
void OfferToBeKilled() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t ignored = write(file, "1000", 4);
  static_cast<void>(ignored);
  close(file);
}

std::vector<sock_filter> Filter() {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const long call : kAllowedCalls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  // abort needs tgkill. Only for this process: the agent and other planners have the same user.
  const auto self = static_cast<unsigned>(getpid());
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(SYS_tgkill), 0, 3));
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFirstArgument));
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, self, 0, 1));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  return filter;
}

bool AllowOnlyComputing() {
  std::vector<sock_filter> filter = Filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

bool Confine(const WorkerLimits& limits) {
  OfferToBeKilled();
  const bool is_limited = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
                          SetLimit(RLIMIT_CPU, limits.cpu_seconds) && SetLimit(RLIMIT_CORE, 0) &&
                          SetLimit(RLIMIT_FSIZE, static_cast<int64_t>(protocol::kMostPlanBytes));
  if (!is_limited || kIsSanitized) return is_limited;
  return SetLimit(RLIMIT_AS, limits.memory_bytes) && AllowOnlyComputing();
}

}  // namespace spillway::agent
