// The program's own virtual memory moves: what it maps leaves and returns at its addresses.
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

constexpr size_t kBytes = 16 * kMiB;  // the budget holds four

class OwnMemoryTest : public JobTest {
 protected:
  struct Memory {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr base = 0;
  };

  static CUmemAllocationProp Plain() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return properties;
  }
  static CUmemGenericAllocationHandle Created(size_t bytes = kBytes) {
    const CUmemAllocationProp properties = Plain();
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, &properties, 0), CUDA_SUCCESS);
    return handle;
  }
  static CUdeviceptr Reserved(size_t bytes = kBytes) {
    CUdeviceptr base = 0;
    EXPECT_EQ(cuMemAddressReserve(&base, bytes, 0, 0, 0), CUDA_SUCCESS);
    return base;
  }
  static CUresult Allow(CUdeviceptr base, size_t bytes, int device = 0) {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return cuMemSetAccess(base, bytes, &access, 1);
  }
  static void Map(CUdeviceptr base, CUmemGenericAllocationHandle handle) {
    EXPECT_EQ(cuMemMap(base, kBytes, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(Allow(base, kBytes), CUDA_SUCCESS);
  }
  // Mapped once more, as another process would map it.
  static CUdeviceptr Imported(CUmemGenericAllocationHandle handle) {
    int file = -1;
    EXPECT_EQ(
        cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_SUCCESS);
    CUmemGenericAllocationHandle imported = 0;
    EXPECT_EQ(cuMemImportFromShareableHandle(&imported,
                                             reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    close(file);
    const CUdeviceptr base = Reserved();
    Map(base, imported);
    return base;
  }
  static Memory Mapped() {
    const Memory memory = {Created(), Reserved()};
    Map(memory.base, memory.handle);
    return memory;
  }
  static std::vector<Memory> FilledMemory(unsigned int count) {
    std::vector<Memory> memory;
    for (unsigned int i = 0; i < count; ++i) {
      memory.push_back(Mapped());
      EXPECT_EQ(cuMemsetD32(memory[i].base, i, kBytes / 4), CUDA_SUCCESS);
    }
    return memory;
  }
  static void ExpectFilled(const std::vector<Memory>& memory) {
    for (unsigned int i = 0; i < memory.size(); ++i)
      EXPECT_TRUE(IsAll(memory[i].base, kBytes, i)) << i;
  }
};

TEST_F(OwnMemoryTest, MovesWhereItExceedsTheBudget) {
  Start();
  const std::vector<Memory> memory = FilledMemory(8);
  for (int i = 0; i < 3; ++i) ExpectFilled(memory);
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

TEST_F(OwnMemoryTest, MakesRoomForAllocations) {
  Start();
  const std::vector<Memory> memory = FilledMemory(3);
  const auto buffers = FilledBuffers(4, kBytes);
  ExpectFilled(memory);
  for (unsigned int i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], kBytes, i)) << i;
}

// Unmapped and mapped elsewhere, the handle still names the bytes, wherever they were.
TEST_F(OwnMemoryTest, BytesFollowTheHandle) {
  Start();
  const std::vector<Memory> memory = FilledMemory(8);
  std::vector<CUdeviceptr> elsewhere;
  for (const Memory& each : memory) {
    ASSERT_EQ(cuMemUnmap(each.base, kBytes), CUDA_SUCCESS);
    elsewhere.push_back(Reserved());
    Map(elsewhere.back(), each.handle);
  }
  for (unsigned int i = 0; i < memory.size(); ++i) EXPECT_TRUE(IsAll(elsewhere[i], kBytes, i)) << i;
}

// vLLM's sleep: bytes are saved by the program, memory is unmapped and released, and later new
// memory is mapped at the same addresses.
TEST_F(OwnMemoryTest, SleepsAndWakesAtTheSameAddresses) {
  Start();
  Filled(2 * kMiB, 1);
  size_t before = 0, asleep = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
  std::vector<Memory> memory = FilledMemory(6);
  std::vector<std::vector<unsigned int>> saved;
  for (const Memory& each : memory) {
    saved.emplace_back(kBytes / 4);
    ASSERT_EQ(cuMemcpyDtoH(saved.back().data(), each.base, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemUnmap(each.base, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemRelease(each.handle), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuMemGetInfo(&asleep, &total), CUDA_SUCCESS);
  EXPECT_EQ(asleep, before);
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i].handle = Created();
    Map(memory[i].base, memory[i].handle);
    ASSERT_EQ(cuMemcpyHtoD(memory[i].base, saved[i].data(), kBytes), CUDA_SUCCESS);
  }
  ExpectFilled(memory);
}

// Of each, the last part may be the handle or the mapping.
TEST_F(OwnMemoryTest, MemoryThatMovedEndsWithItsLastPart) {
  Start();
  Filled(2 * kMiB, 1);
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
  bool releases_first = false;
  for (const Memory& each : FilledMemory(8)) {
    releases_first = !releases_first;
    CUresult released = releases_first ? cuMemRelease(each.handle) : CUDA_SUCCESS;
    ASSERT_EQ(cuMemUnmap(each.base, kBytes), CUDA_SUCCESS);
    if (!releases_first) released = cuMemRelease(each.handle);
    EXPECT_EQ(released, CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(each.handle), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemAddressFree(each.base, kBytes), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuMemGetInfo(&after, &total), CUDA_SUCCESS);
  EXPECT_EQ(after, before);
}

// A kernel may go on from one mapping into the next, which no call names then.
TEST_F(OwnMemoryTest, MappingsNextToEachOtherStay) {
  Start();
  const CUdeviceptr base = Reserved(2 * kBytes);
  for (const CUdeviceptr at : {base, base + kBytes})
    ASSERT_EQ(cuMemMap(at, kBytes, 0, Created(), 0), CUDA_SUCCESS);
  ASSERT_EQ(Allow(base, 2 * kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32(base, 7, 2 * kBytes / 4), CUDA_SUCCESS);

  const auto buffers = FilledBuffers(6, kBytes);
  EXPECT_TRUE(IsAll(base, 2 * kBytes, 7));
  for (unsigned int i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], kBytes, i)) << i;
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);

  // On its own again, it leaves.
  ASSERT_EQ(cuMemUnmap(base + kBytes, kBytes), CUDA_SUCCESS);
  const std::vector<Memory> memory = FilledMemory(4);
  EXPECT_TRUE(IsAll(base, kBytes, 7));
  ExpectFilled(memory);
}

TEST_F(OwnMemoryTest, ExportedMemoryStaysThoughItHadMoved) {
  Start();
  const std::vector<Memory> memory = FilledMemory(8);
  const CUdeviceptr other = Imported(memory[2].handle);
  ASSERT_EQ(cuMemsetD32(other, 99, kBytes / 4), CUDA_SUCCESS);
  for (unsigned int i = 0; i < memory.size(); ++i)
    EXPECT_TRUE(IsAll(memory[i].base, kBytes, i == 2 ? 99 : i)) << i;
  ASSERT_EQ(cuMemsetD32(memory[2].base, 98, kBytes / 4), CUDA_SUCCESS);
  for (unsigned int i = 3; i < memory.size(); ++i)
    EXPECT_TRUE(IsAll(memory[i].base, kBytes, i)) << i;
  EXPECT_TRUE(IsAll(other, kBytes, 98));
}

TEST_F(OwnMemoryTest, SecondMappingSeesTheSameBytes) {
  Start();
  const std::vector<Memory> memory = FilledMemory(8);
  const CUdeviceptr second = Reserved();
  Map(second, memory[1].handle);
  ASSERT_EQ(cuMemsetD32(second, 55, kBytes / 4), CUDA_SUCCESS);
  for (unsigned int i = 0; i < memory.size(); ++i)
    EXPECT_TRUE(IsAll(memory[i].base, kBytes, i == 1 ? 55 : i)) << i;
  EXPECT_TRUE(IsAll(second, kBytes, 55));
  ASSERT_EQ(cuMemUnmap(memory[1].base, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(memory[1].handle), CUDA_SUCCESS);
  EXPECT_TRUE(IsAll(second, kBytes, 55));
}

TEST_F(OwnMemoryTest, QueriesAnswerAsBareWhileItIsAway) {
  Start();
  const std::vector<Memory> memory = FilledMemory(8);
  for (const Memory& each : memory) {
    CUmemGenericAllocationHandle retained = 0;
    EXPECT_EQ(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(each.base + 4096)),
              CUDA_SUCCESS);
    EXPECT_EQ(retained, each.handle);
    EXPECT_EQ(cuMemRelease(retained), CUDA_SUCCESS);
    CUmemAllocationProp properties{};
    EXPECT_EQ(cuMemGetAllocationPropertiesFromHandle(&properties, each.handle), CUDA_SUCCESS);
    EXPECT_EQ(properties.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    unsigned long long flags = 0;
    const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    EXPECT_EQ(cuMemGetAccess(&flags, &here, each.base), CUDA_SUCCESS);
    EXPECT_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUdeviceptr base = 0;
    size_t bytes = 0;
    EXPECT_EQ(cuMemGetAddressRange(&base, &bytes, each.base + 4096), CUDA_SUCCESS);
    EXPECT_EQ(base, each.base);
    EXPECT_EQ(bytes, kBytes);
    EXPECT_EQ(cuMemFree(each.base), CUDA_ERROR_INVALID_VALUE);
    CUipcMemHandle ipc;
    EXPECT_NE(cuIpcGetMemHandle(&ipc, each.base), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAddressFree(each.base, kBytes), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemUnmap(each.base, kBytes / 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuMemMap(each.base, kBytes, 0, each.handle, 0), CUDA_ERROR_INVALID_VALUE);
  }
  ExpectFilled(memory);
}

TEST_F(OwnMemoryTest, WishedAddressesAreGiven) {
  Start();
  const CUdeviceptr base = Reserved(3 * kBytes);
  ASSERT_EQ(cuMemAddressFree(base, 2 * kBytes), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemAddressFree(base, 3 * kBytes), CUDA_SUCCESS);
  CUdeviceptr again = 0;
  ASSERT_EQ(cuMemAddressReserve(&again, 2 * kBytes, 0, base, 0), CUDA_SUCCESS);
  EXPECT_EQ(again, base);
}

// A neighbour that comes and goes does not make exported memory serve others.
TEST_F(OwnMemoryTest, ExportedMemoryServesNobodyElse) {
  Start();
  const CUdeviceptr base = Reserved(2 * kBytes);
  const CUmemGenericAllocationHandle first = Created(), second = Created();
  Map(base, first);
  const CUdeviceptr other = Imported(first);
  ASSERT_EQ(cuMemsetD32(other, 99, kBytes / 4), CUDA_SUCCESS);
  Map(base + kBytes, second);
  ASSERT_EQ(cuMemUnmap(base, 2 * kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(first), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(second), CUDA_SUCCESS);
  const auto buffers = FilledBuffers(3, kBytes);
  EXPECT_TRUE(IsAll(other, kBytes, 99));
  for (unsigned int i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], kBytes, i)) << i;
}

// What lies next to memory that moves may be of another kind.
TEST_F(OwnMemoryTest, NeighboursOfOtherKindsAreServedToo) {
  Start();
  const CUdeviceptr base = Reserved(2 * kBytes);
  Map(base, Created());
  CUmemAllocationProp properties = Plain();
  properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  CUmemGenericAllocationHandle on_host = 0;
  ASSERT_EQ(cuMemCreate(&on_host, kBytes, &properties, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(base + kBytes, kBytes, 0, on_host, 0), CUDA_SUCCESS);
  ASSERT_EQ(Allow(base, 2 * kBytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32(base, 5, 2 * kBytes / 4), CUDA_SUCCESS);
  const auto buffers = FilledBuffers(6, kBytes);
  EXPECT_TRUE(IsAll(base, 2 * kBytes, 5));  // one call, from the first address
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
  ASSERT_EQ(cuMemUnmap(base, 2 * kBytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base, 2 * kBytes), CUDA_SUCCESS);
}

TEST_F(OwnMemoryTest, MemoryWithoutDescriptorsServesNoExports) {
  Start();
  Filled(2 * kMiB, 1);
  CUmemAllocationProp properties = Plain();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(cuMemCreate(&handle, kBytes, &properties, 0), CUDA_SUCCESS);
  const CUdeviceptr base = Reserved();
  Map(base, handle);
  ASSERT_EQ(cuMemUnmap(base, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  CUipcMemHandle ipc;
  EXPECT_EQ(cuIpcGetMemHandle(&ipc, Allocated(kBytes)), CUDA_SUCCESS);
}

TEST_F(OwnMemoryTest, ImpossibleReservationsAreRefused) {
  Start();
  CUdeviceptr base = 0;
  EXPECT_NE(cuMemAddressReserve(&base, 0xffffffffffe00000, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressReserve(&base, kBytes, 0, 4096, 0), CUDA_SUCCESS);  // only a wish
}

// The driver keeps such memory when a context ends, and what was away comes back.
class OwnMemoryEndTest : public OwnMemoryTest {
 protected:
  void ExpectOutlives(CUresult (*end)(CUdevice), unsigned int count) {
    const std::vector<Memory> memory = FilledMemory(count);
    Filled(kBytes, 7);
    ASSERT_EQ(cuMemUnmap(memory[1].base, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(end(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    Map(memory[1].base, memory[1].handle);
    ExpectFilled(memory);
    EXPECT_LE(Statistics("device_bytes_peak"), std::max((count + 1) * kBytes, 64 * kMiB));
    for (const Memory& each : memory) {
      EXPECT_EQ(cuMemUnmap(each.base, kBytes), CUDA_SUCCESS);
      EXPECT_EQ(cuMemRelease(each.handle), CUDA_SUCCESS);
    }
  }
};

TEST_F(OwnMemoryEndTest, OutlivesAReset) {
  Start();
  ExpectOutlives(cuDevicePrimaryCtxReset, 3);
}

TEST_F(OwnMemoryEndTest, OutlivesARelease) {
  Start();
  ExpectOutlives(cuDevicePrimaryCtxRelease, 3);
}

TEST_F(OwnMemoryEndTest, OutlivesAResetThoughItExceedsTheBudget) {
  Start();
  ExpectOutlives(cuDevicePrimaryCtxReset, 6);
}

// The next job on the device pays for it.
TEST_F(OwnMemoryEndTest, CountsAgainstTheBudgetOfTheNextContext) {
  Start();
  const std::vector<Memory> memory = FilledMemory(3);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  const auto buffers = FilledBuffers(4, kBytes);
  EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  for (unsigned int i = 0; i < buffers.size(); ++i) EXPECT_TRUE(IsAll(buffers[i], kBytes, i)) << i;
  ExpectFilled(memory);
}

}  // namespace
}  // namespace spillway::regressions
