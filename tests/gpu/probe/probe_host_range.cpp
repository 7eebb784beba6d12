// docs/gpu, items 3, 7 and 8: kernels on host memory, across processes, at two addresses.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/contract/vmm_device.h"
#include "tests/gpu/probe/measure.h"

namespace spillway::probe {
namespace {

using namespace contract;

constexpr unsigned kBlocks = 264, kThreads = 256;  // two blocks for each multiprocessor of an H200

std::size_t RangeBytes() { return (Simulated() ? 4 : 256) * kMiB; }

CUdeviceptr MapAt(CUmemGenericAllocationHandle handle, std::size_t size_bytes) {
  const CUdeviceptr range = Reserve(size_bytes);
  Map(range, size_bytes, handle);
  ASSERT_OK(SetAccess(range, size_bytes));
  return range;
}

CUdeviceptr HostRange(std::size_t size_bytes) {
  const CUmemAllocationProp properties = HostMemory(0);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemCreate(&handle, size_bytes, &properties, 0));
  return MapAt(handle, size_bytes);
}

std::uint64_t Sum(CUdeviceptr words, std::size_t count) {
  const CUdeviceptr total = Allocate(8);
  ASSERT_OK(cuMemsetD8(total, 0, 8));
  Launch("sum", kBlocks, kThreads, nullptr, total, words, std::uint64_t{count});
  std::uint64_t sum = 0;
  ASSERT_OK(cuMemcpyDtoH(&sum, total, 8));
  return sum;
}

// Runs one kernel over the range twice, times the second run, and reports the rate.
void ReportRate(const char* what, double bytes, const std::function<void()>& launch) {
  launch();
  ASSERT_OK(cuCtxSynchronize());
  ReportFigure(what, GigabytesPerSecond(bytes, DeviceMs(nullptr, launch)), "GB/s");
}

void LoadsAndStores(CUdeviceptr range, std::size_t size_bytes) {
  const std::size_t count = size_bytes / 4;
  const CUdeviceptr device = Allocate(size_bytes), total = Allocate(8);
  const auto bytes = static_cast<double>(size_bytes);
  ReportRate("stores", bytes, [&] {
    Launch("fill", kBlocks, kThreads, nullptr, range, std::uint32_t{3}, std::uint64_t{count});
  });
  EXPECT_EQ(Sum(range, count), std::uint64_t{3} * count);
  ReportRate("loads", bytes, [&] {
    Launch("sum", kBlocks, kThreads, nullptr, total, range, std::uint64_t{count});
  });
  ReportRate("copy from the host range by loads", bytes, [&] {
    Launch("copy", kBlocks, kThreads, nullptr, device, range, std::uint64_t{count});
  });
  EXPECT_EQ(Sum(device, count), std::uint64_t{3} * count);
}

void Atomics(CUdeviceptr range, const char* what) {
  constexpr std::uint32_t kWords = 4096, kRounds = 8;
  ASSERT_OK(cuMemsetD8(range, 0, kWords * 4));
  const double ms = DeviceMs(nullptr, [&] {
    Launch("scatter_atomics", kBlocks, kThreads, nullptr, range, kWords, kRounds);
  });
  EXPECT_EQ(Sum(range, kWords), std::uint64_t{kBlocks} * kThreads * kRounds);
  ReportFigure(what, kBlocks * kThreads * kRounds / ms / 1e3, "million/s");
}

void BulkCopies(CUdeviceptr range, std::size_t size_bytes) {
  const std::size_t tiles = size_bytes / 16384, count = size_bytes / 4;
  const CUdeviceptr device = Allocate(size_bytes);
  Fill(range, 5, count);
  ReportRate("bulk copy (TMA) from the host range", static_cast<double>(size_bytes), [&] {
    Launch("bulk_copy", kBlocks * 4, 32, nullptr, device, range, std::uint64_t{tiles});
  });
  EXPECT_EQ(Sum(device, count), std::uint64_t{5} * count);
  Fill(device, 6, count);
  ReportRate("bulk copy (TMA) to the host range", static_cast<double>(size_bytes), [&] {
    Launch("bulk_copy", kBlocks * 4, 32, nullptr, range, device, std::uint64_t{tiles});
  });
  EXPECT_EQ(Sum(range, count), std::uint64_t{6} * count);
}

void SendFd(int socket, int fd) {
  char byte = 0, control[CMSG_SPACE(sizeof fd)] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  ASSERT_TRUE(sendmsg(socket, &message, 0) == 1);
}

// Returns -1 when the other side ended without sending a descriptor.
int ReceiveFd(int socket) {
  int fd = -1;
  char byte = 0, control[CMSG_SPACE(sizeof fd)] = {};
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) != 1) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  ASSERT_TRUE(header != nullptr && header->cmsg_type == SCM_RIGHTS);
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

CUmemAllocationProp Exportable(CUmemAllocationProp properties) {
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

// In the other process: maps the received memory, and a kernel adds 1 to every word.
void AddOneToImported(int socket, std::size_t size_bytes) {
  const int fd = ReceiveFd(socket);
  if (fd < 0) return;
  UseVmm();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_OK(cuMemImportFromShareableHandle(&handle,
                                           reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const CUdeviceptr range = MapAt(handle, size_bytes);
  Launch("add", kBlocks, kThreads, nullptr, range, std::uint32_t{1}, std::uint64_t{size_bytes / 4});
  ASSERT_OK(cuCtxSynchronize());
}

void ShareWithAnotherProcess(const CUmemAllocationProp& properties) {
  const std::size_t size_bytes = 4 * kMiB;
  int sockets[2];
  ASSERT_TRUE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) == 0);
  const pid_t other = fork();          // before the driver is initialised here
  close(sockets[other == 0 ? 0 : 1]);  // so that each side notices the other's end
  if (other == 0) {
    try {
      AddOneToImported(sockets[1], size_bytes);
      std::exit(0);
    } catch (const Abandoned&) {
      std::exit(1);
    }
  }
  const CUdevice device = UseVmm();
  SKIP_UNLESS(Attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
              "no fd handles");
  CUmemGenericAllocationHandle handle = 0;
  int fd = -1, status = -1;
  ASSERT_OK(cuMemCreate(&handle, size_bytes, &properties, 0));
  const CUdeviceptr range = MapAt(handle, size_bytes);
  Fill(range, 41, size_bytes / 4);
  ASSERT_OK(cuCtxSynchronize());
  ASSERT_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  SendFd(sockets[0], fd);
  waitpid(other, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(Sum(range, size_bytes / 4), std::uint64_t{42} * (size_bytes / 4));
}

}  // namespace

CONTRACT_ALONE(Item3HostRange, LoadsAndStores, "docs/gpu, item 3") {
  UseHostVmm();
  LoadsAndStores(HostRange(RangeBytes()), RangeBytes());
}

CONTRACT_ALONE(Item3HostRange, Atomics, "docs/gpu, item 3") {
  UseHostVmm();
  Atomics(HostRange(2 * kMiB), "atomic additions on the host range");
  Atomics(Allocate(2 * kMiB), "atomic additions on device memory");
}

CONTRACT_ALONE(Item3HostRange, BulkCopies, "docs/gpu, item 3") {
  const CUdevice device = UseHostVmm();
  OBSERVE("has_bulk_copy_engine",
          Attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9);
  BulkCopies(HostRange(RangeBytes()), RangeBytes());
}

CONTRACT_ALONE(Item7SharedHandle, HostHandle, "docs/gpu, item 7") {
  ShareWithAnotherProcess(Exportable(HostMemory(0)));
}

CONTRACT_ALONE(Item7SharedHandle, DeviceHandle, "docs/gpu, item 7") {
  ShareWithAnotherProcess(Exportable(DeviceMemory()));
}

// Once a write through one address is complete, it must be visible through the other.
CONTRACT_ALONE(Item8Aliases, AcrossKernelsAndCopies, "docs/gpu, item 8") {
  UseVmm();
  const std::size_t size_bytes = 32 * kMiB, count = size_bytes / 4;
  const auto handle = CreateHandle(size_bytes);
  const CUdeviceptr first = MapAt(handle, size_bytes), second = MapAt(handle, size_bytes);
  const CUdeviceptr copy = Allocate(size_bytes);
  const int rounds = Simulated() ? 2 : 200;
  int stale_kernel_reads = 0, stale_copies = 0;
  for (int round = 1; round <= rounds; ++round) {
    const auto value = static_cast<std::uint32_t>(round);
    Fill(round % 2 ? first : second, value, count);
    stale_kernel_reads += Sum(round % 2 ? second : first, count) != std::uint64_t{value} * count;
    ASSERT_OK(cuMemcpyDtoD(copy, round % 2 ? second : first, size_bytes));
    stale_copies += Sum(copy, count) != std::uint64_t{value} * count;
  }
  EXPECT_EQ(stale_kernel_reads, 0);
  EXPECT_EQ(stale_copies, 0);
  ReportFigure("rounds", rounds, "rounds");
}

}  // namespace spillway::probe
