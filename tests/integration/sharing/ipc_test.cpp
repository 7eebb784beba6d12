// Memory that other processes open by legacy IPC handles stays resident while open.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

constexpr size_t kBytes = 16 * kMiB;

// Another process of the job, forked before any CUDA call, at the other end of a socket.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<bool(int)>& body) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      _exit(body(ends[1]) ? 0 : 1);
    }
    close(ends[1]);
    line_ = ends[0];
  }
  int line() const { return line_; }
  bool Succeeded() {
    close(line_);
    int status = 1;
    waitpid(process_, &status, 0);
    return status == 0;
  }

 private:
  pid_t process_ = 0;
  int line_ = -1;
};

template <class T>
void Send(int line, const T& value) {
  EXPECT_EQ(write(line, &value, sizeof value), static_cast<ssize_t>(sizeof value));
}
template <class T>
T Receive(int line) {
  T value{};
  EXPECT_EQ(recv(line, &value, sizeof value, MSG_WAITALL), static_cast<ssize_t>(sizeof value));
  return value;
}

void UseDevice() {
  CUcontext context = nullptr;
  EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
}

bool Reads(CUdeviceptr address, std::uint32_t expected) {
  std::vector<std::uint32_t> words(kBytes / 4);
  if (cuMemcpyDtoH(words.data(), address, kBytes) != CUDA_SUCCESS) return false;
  return std::all_of(words.begin(), words.end(),
                     [=](std::uint32_t word) { return word == expected; });
}

// Regression: the driver answered for the chunk that the address lies in.
bool IsDescribedWhole(CUdeviceptr base) {
  constexpr CUdeviceptr kInside = 9 * kMiB;
  CUdeviceptr range = 0, mapping = 0;
  std::size_t range_bytes = 0, mapping_bytes = 0;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
      CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
  void* answers[] = {&range, &range_bytes, &mapping, &mapping_bytes};
  const CUresult result = cuPointerGetAttributes(4, attributes, answers, base + kInside);
  std::size_t alone = 0;
  const CUresult second =
      cuPointerGetAttribute(&alone, CU_POINTER_ATTRIBUTE_RANGE_SIZE, base + kInside);
  return result == CUDA_SUCCESS && second == CUDA_SUCCESS && range == base && mapping == base &&
         range_bytes == kBytes && mapping_bytes == kBytes && alone == kBytes;
}

// Confirms each handle, and closes it when told to.
bool OpensAndCloses(int line, std::uint32_t expected) {
  UseDevice();
  bool right = true;
  CUipcMemHandle handle;
  while (recv(line, &handle, sizeof handle, MSG_WAITALL) == sizeof handle) {
    CUdeviceptr address = 0;
    right &=
        cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == CUDA_SUCCESS;
    right &= Reads(address, expected) && IsDescribedWhole(address);
    Send(line, 'o');
    Receive<char>(line);
    right &= Reads(address, expected);
    right &= cuIpcCloseMemHandle(address) == CUDA_SUCCESS;
    Send(line, 'c');
  }
  return right;
}

// `task` is a folder in /proc, and the state a letter as in ps(1).
void AwaitState(const std::string& task, char state) {
  for (std::string line;; sched_yield()) {
    std::getline(std::ifstream(task + "/stat"), line);
    const size_t end = line.rfind(')');
    if (end != std::string::npos && line[end + 2] == state) return;
  }
}

// The exporter answers for the second memory only after this process has asked about the first.
bool AsksWhileAnExporterIsSilent(int line) {
  UseDevice();
  const auto first = Receive<CUipcMemHandle>(line), second = Receive<CUipcMemHandle>(line);
  CUdeviceptr base = 0, other = 0;
  if (cuIpcOpenMemHandle(&base, first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS)
    return false;
  kill(getppid(), SIGSTOP);
  AwaitState("/proc/" + std::to_string(getppid()), 'T');
  bool is_described = false;
  const std::string opener = "/proc/self/task/" + std::to_string(gettid());
  std::thread asker([&] {
    UseDevice();
    AwaitState(opener, 'S');
    is_described = IsDescribedWhole(base);
    kill(getppid(), SIGCONT);
  });
  const CUresult opened = cuIpcOpenMemHandle(&other, second, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  kill(getppid(), SIGCONT);
  asker.join();
  return opened == CUDA_SUCCESS && is_described && Reads(other, 78);
}

double ProcessorSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

class IpcTest : public JobTest {
 protected:
  static CUipcMemHandle HandleOf(CUdeviceptr address) {
    CUipcMemHandle handle{};
    EXPECT_EQ(cuIpcGetMemHandle(&handle, address), CUDA_SUCCESS);
    return handle;
  }
};

TEST_F(IpcTest, OpenedMemoryStaysWhileOthersAreEvicted) {
  OtherProcess other([](int line) { return OpensAndCloses(line, 77); });
  Start();
  const CUdeviceptr shared = Filled(kBytes, 77);
  Send(other.line(), HandleOf(shared));
  EXPECT_EQ(Receive<char>(other.line()), 'o');

  // Uses twice the budget while the other process has the memory open.
  const auto buffers = FilledBuffers(8, kBytes);
  for (int round = 0; round < 3; ++round) {
    for (unsigned int i = 0; i < buffers.size(); ++i) {
      ASSERT_EQ(cuMemsetD32(buffers[i], i, kBytes / 4), CUDA_SUCCESS);
      ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
  }
  for (unsigned int i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], kBytes, i)) << i;
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);

  Send(other.line(), 'x');
  EXPECT_EQ(Receive<char>(other.line()), 'c');
  EXPECT_TRUE(other.Succeeded());
}

TEST_F(IpcTest, EvictedMemoryIsRestoredForItsHandle) {
  OtherProcess other([](int line) { return OpensAndCloses(line, 77); });
  Start();
  const CUdeviceptr shared = Filled(kBytes, 77);
  FilledBuffers(4, kBytes);  // they evict the oldest, `shared`
  Send(other.line(), HandleOf(shared));
  EXPECT_EQ(Receive<char>(other.line()), 'o');
  Send(other.line(), 'x');
  EXPECT_EQ(Receive<char>(other.line()), 'c');
  EXPECT_TRUE(other.Succeeded());
}

TEST_F(IpcTest, ClosedMemoryMovesAgain) {
  setenv("SPILLWAY_PARK", "off", 1);  // what does not fit is out of memory, and tells
  OtherProcess other([](int line) { return OpensAndCloses(line, 77); });
  Start();
  const CUdeviceptr shared = Filled(kBytes, 77);
  Send(other.line(), HandleOf(shared));
  EXPECT_EQ(Receive<char>(other.line()), 'o');
  const CUdeviceptr whole = Allocated(64 * kMiB);
  EXPECT_EQ(cuMemsetD32(whole, 1, 16 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  Send(other.line(), 'x');
  EXPECT_EQ(Receive<char>(other.line()), 'c');

  // The exporter learns of it shortly afterwards.
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (result == CUDA_ERROR_OUT_OF_MEMORY && std::chrono::steady_clock::now() < deadline) {
    sched_yield();
    result = cuMemsetD32(whole, 1, 16 * kMiB);
  }
  EXPECT_EQ(result, CUDA_SUCCESS);

  // The handle is still valid: opening it restores the memory.
  Send(other.line(), HandleOf(shared));
  EXPECT_EQ(Receive<char>(other.line()), 'o');
  Send(other.line(), 'x');
  EXPECT_EQ(Receive<char>(other.line()), 'c');
  EXPECT_TRUE(other.Succeeded());
}

TEST_F(IpcTest, FreedMemoryStaysWithTheProcessThatOpenedIt) {
  OtherProcess other([](int line) { return OpensAndCloses(line, 77); });
  Start();
  const CUdeviceptr shared = Filled(kBytes, 77);
  const CUipcMemHandle handle = HandleOf(shared);
  Send(other.line(), handle);
  EXPECT_EQ(Receive<char>(other.line()), 'o');
  ASSERT_EQ(cuMemFree(shared), CUDA_SUCCESS);
  const auto buffers =
      FilledBuffers(4, kBytes);  // none of them uses the memory that the other process still sees
  Send(other.line(), 'x');
  EXPECT_EQ(Receive<char>(other.line()), 'c');
  EXPECT_TRUE(other.Succeeded());
}

TEST_F(IpcTest, HandlesOfFreedMemoryOpenNothing) {
  OtherProcess other([](int line) {
    UseDevice();
    const auto handle = Receive<CUipcMemHandle>(line);
    CUdeviceptr address = 0;
    return cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != CUDA_SUCCESS;
  });
  Start();
  const CUdeviceptr shared = Filled(kBytes, 77);
  const CUipcMemHandle handle = HandleOf(shared);
  ASSERT_EQ(cuMemFree(shared), CUDA_SUCCESS);
  Filled(kBytes, 8);
  Send(other.line(), handle);
  EXPECT_TRUE(other.Succeeded());
}

// The next context allocates at the same addresses.
TEST_F(IpcTest, HandlesOfAResetContextAreForgotten) {
  OtherProcess other([](int line) { return OpensAndCloses(line, 8); });
  Start();
  const CUdeviceptr before = Filled(kBytes, 77);
  const CUipcMemHandle old_handle = HandleOf(before);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  UseDevice();
  const CUdeviceptr after = Filled(kBytes, 8);
  ASSERT_EQ(after, before);
  const CUipcMemHandle handle = HandleOf(after);
  EXPECT_NE(memcmp(&handle, &old_handle, sizeof handle), 0);
  Send(other.line(), handle);
  EXPECT_EQ(Receive<char>(other.line()), 'o');
  Send(other.line(), 'x');
  EXPECT_EQ(Receive<char>(other.line()), 'c');
  EXPECT_TRUE(other.Succeeded());
}

// Regression: the asking thread waited for the exporter, too, up to 20 s.
TEST_F(IpcTest, SilentExporterDelaysOnlyTheThreadThatOpensItsMemory) {
  OtherProcess other([](int line) { return AsksWhileAnExporterIsSilent(line); });
  Start();
  Send(other.line(), HandleOf(Filled(kBytes, 77)));
  Send(other.line(), HandleOf(Filled(kBytes, 78)));
  EXPECT_TRUE(other.Succeeded());
}

// Regression: the thread that answers openers never slept while a connection waited.
TEST_F(IpcTest, ExporterWithoutDescriptorsSleepsAndAnswersLater) {
  OtherProcess other([](int line) { return OpensAndCloses(line, 77); });
  Start();
  const CUipcMemHandle handle = HandleOf(Filled(kBytes, 77));
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int lowest = dup(other.line());
  close(lowest);
  const rlimit none_left{static_cast<rlim_t>(lowest), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  const double before_s = ProcessorSeconds();

  Send(other.line(), handle);
  pollfd answer{other.line(), POLLIN, 0};
  EXPECT_EQ(poll(&answer, 1, 1000), 0);

  EXPECT_LT(ProcessorSeconds() - before_s, 0.5);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(Receive<char>(other.line()), 'o');
  Send(other.line(), 'x');
  EXPECT_EQ(Receive<char>(other.line()), 'c');
  EXPECT_TRUE(other.Succeeded());
}

}  // namespace
}  // namespace spillway::regressions
