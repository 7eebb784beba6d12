#include <gnu/libc-version.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "base/size_text.h"
#include "cli/doctor.h"
#include "cli/files.h"
#include "cli/peak_store.h"

namespace spillway::cli {
namespace {

constexpr std::uint64_t kLittleHostBytes = 2ULL << 30;
constexpr std::uint64_t kDefaultMaxMaps =
    65530;  // the kernel's default; each moved chunk may need a mapping

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  const std::optional<std::string> line = ReadFirstLine(path);
  if (!line || line->empty() || line->front() < '0' || line->front() > '9') return std::nullopt;
  return std::strtoull(line->c_str(), nullptr, 10);
}

std::optional<std::uint64_t> AvailableBytes(const std::string& root) {
  std::istringstream meminfo(base::ReadFile(root + "/proc/meminfo").value_or(""));
  std::string word;
  while (meminfo >> word) {
    std::uint64_t kibibytes = 0;
    if (word == "MemAvailable:" && meminfo >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

// The cgroup v2 limit as seen inside a container.
std::optional<std::uint64_t> CgroupLimitBytes(const std::string& root) {
  return ReadNumber(root + "/sys/fs/cgroup/memory.max");
}

Finding ExamineHostMemory(const std::string& root) {
  std::optional<std::uint64_t> available_bytes = AvailableBytes(root);
  if (!available_bytes) {
    return {Level::kWarning, "host memory", "unknown: /proc/meminfo cannot be read", "mount /proc"};
  }
  std::string fact = base::FormatBytes(*available_bytes) + " available";
  const std::optional<std::uint64_t> limit_bytes = CgroupLimitBytes(root);
  if (limit_bytes && *limit_bytes < *available_bytes) {
    available_bytes = limit_bytes;
    fact += ", " + base::FormatBytes(*limit_bytes) + " by this control group";
  }
  if (*available_bytes >= kLittleHostBytes) return {Level::kOk, "host memory", fact, ""};
  return {Level::kWarning, "host memory", fact,
          "what leaves the device goes there: free some, or move less (--budget)"};
}

Finding ExamineMaxMaps(const std::string& root) {
  const std::optional<std::uint64_t> maps = ReadNumber(root + "/proc/sys/vm/max_map_count");
  if (!maps) return {Level::kWarning, "vm.max_map_count", "unknown", "mount /proc"};
  const std::string fact = std::to_string(*maps);
  if (*maps >= kDefaultMaxMaps) return {Level::kOk, "vm.max_map_count", fact, ""};
  return {Level::kWarning, "vm.max_map_count", fact + ": large jobs may run out of mappings",
          "sysctl vm.max_map_count=" + std::to_string(kDefaultMaxMaps)};
}

Finding ExamineOvercommit(const std::string& root) {
  const std::optional<std::uint64_t> mode = ReadNumber(root + "/proc/sys/vm/overcommit_memory");
  if (!mode) return {Level::kWarning, "vm.overcommit", "unknown", "mount /proc"};
  if (*mode != 2) return {Level::kOk, "vm.overcommit", std::to_string(*mode), ""};
  return {Level::kWarning, "vm.overcommit", "2: large address ranges may be refused",
          "sysctl vm.overcommit_memory=0"};
}

Finding ExamineNuma(const std::string& root) {
  const std::string nodes = ReadFirstLine(root + "/sys/devices/system/node/online").value_or("");
  if (nodes.empty()) return {Level::kOk, "numa", "the kernel shows no nodes", ""};
  return {Level::kOk, "numa", "nodes " + nodes, ""};
}

Finding ExamineSelinux(const std::string& root) {
  const std::optional<std::uint64_t> enforcing = ReadNumber(root + "/sys/fs/selinux/enforce");
  if (!enforcing) return {Level::kOk, "selinux", "not in use", ""};
  if (*enforcing == 0) return {Level::kOk, "selinux", "permissive", ""};
  return {Level::kWarning, "selinux",
          "enforcing: a domain transition on exec drops LD_PRELOAD without a word",
          "allow noatsecure for the job's domain if jobs run without Spillway"};
}

// Containers' seccomp profiles refuse get_mempolicy without CAP_SYS_NICE.
Finding ExamineMempolicy() {
  int mode = 0;
  if (syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 || errno == ENOSYS) {
    return {Level::kOk, "get_mempolicy", "allowed", ""};
  }
  return {Level::kWarning, "get_mempolicy", std::string("refused: ") + std::strerror(errno),
          "host memory may lie on a far NUMA node; start the container with --cap-add SYS_NICE"};
}

Finding ExamineSharedMemory() {
  struct statvfs facts = {};
  if (statvfs("/dev/shm", &facts) != 0) {
    return {Level::kWarning, "/dev/shm", std::strerror(errno),
            "mount a tmpfs there: frameworks' data loaders need it"};
  }
  const std::uint64_t size_bytes = std::uint64_t{facts.f_blocks} * facts.f_frsize;
  return {Level::kOk, "/dev/shm", base::FormatBytes(size_bytes), ""};
}

std::string LimitText(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : base::FormatBytes(limit);
}

Finding ExamineAddressLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Level::kOk, "address space", "unlimited", ""};
  return {Level::kProblem, "address space",
          LimitText(limit.rlim_cur) + ": CUDA reserves far more than it uses",
          "ulimit -v unlimited"};
}

// The kernel module pins CUDA's memory and does not count it against this limit; RDMA's counts.
Finding ExamineLockedMemory() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return {Level::kOk, "locked memory",
          LimitText(limit.rlim_cur) + " (not held against CUDA's pinned memory)", ""};
}

Finding ExamineSecureExecution() {
  if (getauxval(AT_SECURE) == 0) return {Level::kOk, "secure execution", "no", ""};
  return {Level::kProblem, "secure execution",
          "this process runs with changed privileges: preloads are dropped",
          "run spillway directly, not set-user-id and not with file capabilities"};
}

// Debuggers need ptrace, jobs do not.
Finding ExaminePtrace(const std::string& root) {
  const std::optional<std::uint64_t> scope =
      ReadNumber(root + "/proc/sys/kernel/yama/ptrace_scope");
  return {Level::kOk, "ptrace",
          scope ? "yama scope " + std::to_string(*scope) : "unrestricted by yama", ""};
}

Finding ExamineLibc() {
  int major = 0;
  int minor = 0;
  std::sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
  const std::string fact = std::string("glibc ") + gnu_get_libc_version();
  if (major > 2 || minor >= 28) return {Level::kOk, "libc", fact, ""};
  return {Level::kProblem, "libc", fact,
          "Spillway needs glibc 2.28 or newer (Debian 10, Ubuntu 20.04, RHEL 8)"};
}

Finding ExamineOtherPreloads() {
  const std::string preloads = EnvironmentValue("LD_PRELOAD");
  if (preloads.empty()) return {Level::kOk, "other preloads", "none", ""};
  return {Level::kWarning, "other preloads", preloads + " (loaded after libspillway.so)",
          "if a job misbehaves, try it without them"};
}

Finding ExaminePeakStore() {
  const std::optional<std::string> folder = PeakFolder();
  const std::string remedy =
      "set XDG_STATE_HOME to a folder that you may write; --budget 25%peak needs it";
  if (!folder)
    return {Level::kWarning, "peak store", "no place: neither HOME nor XDG_STATE_HOME is set",
            remedy};
  std::string existing = *folder;
  while (access(existing.c_str(), F_OK) != 0) existing = ParentFolder(existing);
  if (access(existing.c_str(), W_OK) == 0) return {Level::kOk, "peak store", *folder, ""};
  return {Level::kWarning, "peak store", existing + ": " + std::strerror(errno), remedy};
}

}  // namespace

void ExamineKernel(const std::string& root, Findings& findings) {
  findings.push_back(ExamineHostMemory(root));
  findings.push_back(ExamineMaxMaps(root));
  findings.push_back(ExamineOvercommit(root));
  findings.push_back(ExamineNuma(root));
  findings.push_back(ExamineSelinux(root));
  findings.push_back(ExaminePtrace(root));
}

void ExamineSession(Findings& findings) {
  findings.push_back(ExamineLibc());
  findings.push_back(ExamineAddressLimit());
  findings.push_back(ExamineLockedMemory());
  findings.push_back(ExamineSharedMemory());
  findings.push_back(ExamineMempolicy());
  findings.push_back(ExamineSecureExecution());
  findings.push_back(ExamineOtherPreloads());
  findings.push_back(ExaminePeakStore());
}

}  // namespace spillway::cli
