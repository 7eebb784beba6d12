#include "cli/accelerator_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/files.h"

namespace spillway::cli {
namespace {

constexpr int kMostUuids = 64;

// Below PIPE_BUF (4096), so one write sends all of it.
struct Answer {
  ProbeOutcome outcome;
  int driver_result;
  int driver_version;
  int device_count;
  int attributes[3];
  std::uint64_t device_bytes;
  char message[1024];
  char driver_path[1024];
  char device_name[256];
  unsigned char uuids[kMostUuids][16];
};
static_assert(sizeof(Answer) < 4096);

// CUdevice_attribute values from the driver API reference.
constexpr int kVirtualMemoryAttribute = 102;
constexpr int kFdHandlesAttribute = 103;
constexpr int kHostNumaAttribute = 141;

// Without a persistence daemon, drivers of large machines take seconds to start.
constexpr int kTimeoutMs = 60'000;

template <std::size_t kCapacity>
void CopyText(char (&destination)[kCapacity], const char* text) {
  std::snprintf(destination, kCapacity, "%s", text == nullptr ? "" : text);
}

class DriverSession {
 public:
  DriverSession(void* library, Answer& answer) : library_(library), answer_(answer) {}

  template <typename... Parameters, typename... Arguments>
  bool Call(const char* name, int (*)(Parameters...), Arguments... arguments) {
    CopyText(answer_.message, name);
    using Function = int (*)(Parameters...);
    const auto function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) {
      answer_.outcome = ProbeOutcome::kNotADriver;
      return false;
    }
    answer_.driver_result = function(arguments...);
    if (answer_.driver_result == 0) return true;
    answer_.outcome = ProbeOutcome::kDriverFailed;
    return false;
  }

 private:
  void* const library_;
  Answer& answer_;
};

using TakesFlags = int (*)(unsigned);
using GivesInt = int (*)(int*);
using GivesDevice = int (*)(int*, int);
using GivesName = int (*)(char*, int, int);
using GivesBytes = int (*)(std::size_t*, int);
using GivesAttribute = int (*)(int*, int, int);
using GivesUuid = int (*)(unsigned char*, int);

// Unknown UUIDs stay zero.
void AskUuids(DriverSession& driver, Answer& answer) {
  for (int i = 0; i < std::min(answer.device_count, kMostUuids); ++i) {
    int device = 0;
    const bool says = driver.Call("cuDeviceGet", GivesDevice{}, &device, i) &&
                      driver.Call("cuDeviceGetUuid", GivesUuid{}, &answer.uuids[i][0], device);
    if (!says) return;
  }
}

bool AskDevice(DriverSession& driver, Answer& answer) {
  int device = 0;
  std::size_t device_bytes = 0;
  if (!driver.Call("cuDeviceGet", GivesDevice{}, &device, 0)) return false;
  if (!driver.Call("cuDeviceGetName", GivesName{}, answer.device_name, 256, device)) return false;
  if (!driver.Call("cuDeviceTotalMem_v2", GivesBytes{}, &device_bytes, device)) return false;
  answer.device_bytes = device_bytes;
  constexpr int kAttributes[] = {kVirtualMemoryAttribute, kFdHandlesAttribute, kHostNumaAttribute};
  for (int i = 0; i < 3; ++i) {
    // An older driver rejects newer attributes.
    if (!driver.Call("cuDeviceGetAttribute", GivesAttribute{}, &answer.attributes[i],
                     kAttributes[i], device)) {
      answer.attributes[i] = 0;
    }
  }
  return true;
}

void AskDriver(const std::string& path, Answer& answer) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    answer.outcome = ProbeOutcome::kNoDriver;
    CopyText(answer.message, dlerror());
    return;
  }
  Dl_info info = {};
  void* symbol = dlsym(library, "cuInit");
  if (symbol != nullptr && dladdr(symbol, &info) != 0) {
    CopyText(answer.driver_path, ResolvedPath(info.dli_fname).value_or(info.dli_fname).c_str());
  }
  DriverSession driver(library, answer);
  if (!driver.Call("cuInit", TakesFlags{}, 0U)) return;
  if (!driver.Call("cuDriverGetVersion", GivesInt{}, &answer.driver_version)) return;
  if (!driver.Call("cuDeviceGetCount", GivesInt{}, &answer.device_count)) return;
  if (!AskDevice(driver, answer)) return;
  AskUuids(driver, answer);
  answer.driver_result = 0;
  answer.message[0] = '\0';
  answer.outcome = ProbeOutcome::kReady;
}

[[noreturn]] void RunChild(int answer_fd, const std::string& driver,
                           const EnvironmentChanges& changes) {
  const int null_fd = open("/dev/null", O_RDWR);
  dup2(null_fd, STDIN_FILENO);
  dup2(null_fd, STDOUT_FILENO);
  dup2(null_fd, STDERR_FILENO);
  changes.Apply();
  Answer answer = {};
  AskDriver(driver, answer);
  const ssize_t written = write(answer_fd, &answer, sizeof answer);
  // _exit skips the driver's exit handlers.
  _exit(written == static_cast<ssize_t>(sizeof answer) ? 0 : 1);
}

bool ReadAnswer(int fd, Answer& answer) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = poll(&waiting, 1, kTimeoutMs);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return false;
  return read(fd, &answer, sizeof answer) == static_cast<ssize_t>(sizeof answer);
}

std::string DescribeDeath(int wait_status) {
  if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL)
    return "it did not answer within 60 s";
  if (WIFSIGNALED(wait_status))
    return std::string("it died of ") + strsignal(WTERMSIG(wait_status));
  return "it ended without an answer";
}

// In the format of nvidia-smi -L.
std::string UuidText(const unsigned char (&bytes)[16]) {
  if (std::all_of(std::begin(bytes), std::end(bytes), [](unsigned char byte) { return byte == 0; }))
    return "";
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

std::vector<std::string> UuidsOf(const Answer& answer) {
  std::vector<std::string> uuids;
  for (int i = 0; i < std::min(answer.device_count, kMostUuids); ++i)
    uuids.push_back(UuidText(answer.uuids[i]));
  return uuids;
}

AcceleratorFacts ToFacts(const Answer& answer) {
  return {.outcome = answer.outcome,
          .message = answer.message,
          .driver_path = answer.driver_path,
          .driver_result = answer.driver_result,
          .driver_version = answer.driver_version,
          .device_count = answer.device_count,
          .device_name = answer.device_name,
          .device_uuids = UuidsOf(answer),
          .device_bytes = answer.device_bytes,
          .has_virtual_memory = answer.attributes[0] == 1,
          .has_host_parking = answer.attributes[2] == 1,
          .has_fd_handles = answer.attributes[1] == 1};
}

AcceleratorFacts Crashed(const std::string& message) {
  AcceleratorFacts facts;
  facts.message = message;
  return facts;
}

}  // namespace

AcceleratorFacts ProbeAccelerator(const std::string& driver, const EnvironmentChanges& changes) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Crashed(std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) return Crashed(std::strerror(errno));
  if (child == 0) RunChild(fds[1], driver, changes);
  close(fds[1]);
  Answer answer = {};
  const bool answered = ReadAnswer(fds[0], answer);
  close(fds[0]);
  if (!answered) kill(child, SIGKILL);
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  return answered ? ToFacts(answer) : Crashed(DescribeDeath(wait_status));
}

}  // namespace spillway::cli
