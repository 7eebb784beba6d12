// Kernels find addresses that no call shows: in a device variable that a kernel has set, and in
// tables in host memory. Programs with such kernels lost writes: the memory behind looked unused,
// so its host copy counted as valid (8 came back instead of 20), or its mapping was gone (an
// illegal address).
//
// Each program adds to a buffer through a hidden pointer, long after its job counts as proven.
// Other calls only read the buffer, and other buffers evict it.
#include "simulator/kernels/module_elf.h"
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::GlobalEntry;
using simulator::Image;
using simulator::KernelEntry;
using simulator::KernelParameter;
using simulator::LaunchShape;

constexpr size_t kBufferBytes = 8 * kMiB;
constexpr int kOthers = 12;  // 96 MiB beside the buffer, of a budget of 64
constexpr std::uint32_t kFirst = 8;
constexpr int kAdditions = 12;

// Device variables: `slot` holds an address; the initialiser of `way` points to `slot`.
std::uint32_t* slot = nullptr;
std::uint32_t** way = &slot;

void AddOneAt(std::uint32_t* words) {
  for (size_t i = 0; i < kBufferBytes / 4; ++i) ++words[i];
}
void Set(const LaunchShape&, void* const* arguments) {
  slot = *static_cast<std::uint32_t* const*>(arguments[0]);
}
void SetByWay(const LaunchShape&, void* const* arguments) {
  *way = *static_cast<std::uint32_t* const*>(arguments[0]);
}
void AddBySlot(const LaunchShape&, void* const*) { AddOneAt(slot); }
constexpr std::uintptr_t kMask = 0x5a5a'5a5a'5a5a'5a5a;
std::uintptr_t masked = 0;
void SetMasked(const LaunchShape&, void* const* arguments) {
  masked = *static_cast<const std::uintptr_t*>(arguments[0]) ^ kMask;
}
void AddByMasked(const LaunchShape&, void* const*) {
  AddOneAt(reinterpret_cast<std::uint32_t*>(masked ^ kMask));
}
// The buffer's end is kept.
void AddBeforeSlot(const LaunchShape&, void* const*) { AddOneAt(slot - kBufferBytes / 4); }
void AddBeforeTable(const LaunchShape&, void* const* arguments) {
  AddOneAt(**static_cast<std::uint32_t** const*>(arguments[0]) - kBufferBytes / 4);
}
void AddByTable(const LaunchShape&, void* const* arguments) {
  AddOneAt(**static_cast<std::uint32_t** const*>(arguments[0]));
}
void AddByWayOfTable(const LaunchShape&, void* const* arguments) {
  AddOneAt(***static_cast<std::uint32_t*** const*>(arguments[0]));
}
void WriteTable(const LaunchShape&, void* const* arguments) {
  **static_cast<std::uint32_t** const*>(arguments[0]) =
      *static_cast<std::uint32_t* const*>(arguments[1]);
}
void Touch(const LaunchShape&, void* const* arguments) {
  ++**static_cast<std::uint32_t* const*>(arguments[0]);
}

constexpr KernelParameter kOneWord[] = {{0, 8}};
constexpr KernelParameter kTwoWords[] = {{0, 8}, {8, 8}};
const KernelEntry kKernels[] = {{"set", Set, nullptr, 1, kOneWord},
                                {"set_by_way", SetByWay, nullptr, 1, kOneWord},
                                {"add_by_slot", AddBySlot, nullptr, 0, nullptr},
                                {"add_by_table", AddByTable, nullptr, 1, kOneWord},
                                {"write_table", WriteTable, nullptr, 2, kTwoWords},
                                {"touch", Touch, nullptr, 1, kOneWord},
                                {"set_masked", SetMasked, nullptr, 1, kOneWord},
                                {"add_by_masked", AddByMasked, nullptr, 0, nullptr},
                                {"add_by_way_of_table", AddByWayOfTable, nullptr, 1, kOneWord},
                                {"add_before_slot", AddBeforeSlot, nullptr, 0, nullptr},
                                {"add_before_table", AddBeforeTable, nullptr, 1, kOneWord}};
const GlobalEntry kGlobals[] = {
    {"slot", &slot, sizeof slot}, {"way", &way, sizeof way}, {"masked", &masked, sizeof masked}};
const Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 11, kKernels, 3, kGlobals};

class HiddenPointersTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    Start();
    ASSERT_EQ(cuModuleLoadData(&module_, simulator::ModuleElfOf(kImage)), CUDA_SUCCESS);
    buffer_ = Filled(kBufferBytes, kFirst);
    scratch_ = Filled(kBufferBytes, 0);
  }
  void TearDown() override {
    EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
  }

  CUfunction Function(const char* name) const {
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&function, module_, name), CUDA_SUCCESS);
    return function;
  }
  void TouchOthers() {
    if (others_.empty()) others_ = FilledBuffers(kOthers, kBufferBytes);
    for (CUdeviceptr& other : others_) {
      void* parameters[] = {&other};
      EXPECT_EQ(Launch(Function("touch"), nullptr, parameters), CUDA_SUCCESS);
    }
  }
  // From here on the job counts as proven.
  void Settle() {
    for (int i = 0; i < 8; ++i) TouchOthers();
  }
  // Restores the buffer by calls that only read it, adds to it through the hidden pointer, and
  // evicts it.
  void AddInRounds(CUfunction add, void** parameters) {
    for (int i = 0; i < kAdditions; ++i) {
      EXPECT_EQ(cuMemcpyDtoDAsync(scratch_, buffer_, kBufferBytes, nullptr), CUDA_SUCCESS);
      EXPECT_EQ(Launch(add, nullptr, parameters), CUDA_SUCCESS);
      TouchOthers();
    }
    EXPECT_TRUE(IsAll(buffer_, kBufferBytes, kFirst + kAdditions));
  }
  // The same with the buffer evicted before the kernel runs.
  void AddWhenEvicted(CUfunction add, void** parameters) {
    for (int i = 0; i < kAdditions; ++i) {
      EXPECT_EQ(cuMemcpyDtoDAsync(scratch_, buffer_, kBufferBytes, nullptr), CUDA_SUCCESS);
      TouchOthers();
      EXPECT_EQ(Launch(add, nullptr, parameters), CUDA_SUCCESS);
    }
    EXPECT_TRUE(IsAll(buffer_, kBufferBytes, kFirst + kAdditions));
  }
  void AddThroughTable(CUdeviceptr table) {
    Settle();
    void* parameters[] = {&table};
    AddInRounds(Function("add_by_table"), parameters);
  }
  void AddThroughTableWhenEvicted(CUdeviceptr table) {
    Settle();
    void* parameters[] = {&table};
    AddWhenEvicted(Function("add_by_table"), parameters);
  }
  CUdeviceptr PinnedTable() const {
    void* table = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&table, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
    return reinterpret_cast<CUdeviceptr>(table);
  }
  static CUdeviceptr ManagedTable() {
    CUdeviceptr table = 0;
    EXPECT_EQ(cuMemAllocManaged(&table, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    return table;
  }
  CUdeviceptr RegisteredTable() {
    EXPECT_EQ(cuMemHostRegister(page_, sizeof page_, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
    return reinterpret_cast<CUdeviceptr>(page_);
  }
  static void HostWrites(CUdeviceptr table, CUdeviceptr address) {
    *reinterpret_cast<CUdeviceptr*>(table) = address;
  }

  CUmodule module_ = nullptr;
  CUdeviceptr buffer_ = 0, scratch_ = 0;
  std::vector<CUdeviceptr> others_;
  alignas(4096) char page_[4096] = {};
};

TEST_F(HiddenPointersTest, DeviceVariableSetByAKernel) {
  void* parameters[] = {&buffer_};
  EXPECT_EQ(Launch(Function("set"), nullptr, parameters), CUDA_SUCCESS);
  Settle();
  AddInRounds(Function("add_by_slot"), nullptr);
}

TEST_F(HiddenPointersTest, DeviceVariableSetByAKernelWhileTheBufferIsEvicted) {
  void* parameters[] = {&buffer_};
  EXPECT_EQ(Launch(Function("set"), nullptr, parameters), CUDA_SUCCESS);
  Settle();
  AddWhenEvicted(Function("add_by_slot"), nullptr);
}

TEST_F(HiddenPointersTest, DeviceVariableThatAKernelSetToTheEndOfTheBuffer) {
  CUdeviceptr end = buffer_ + kBufferBytes;
  void* parameters[] = {&end};
  EXPECT_EQ(Launch(Function("set"), nullptr, parameters), CUDA_SUCCESS);
  Settle();
  AddWhenEvicted(Function("add_before_slot"), nullptr);
}

TEST_F(HiddenPointersTest, TableInDeviceMemoryThatAKernelGaveTheEndOfTheBuffer) {
  CUdeviceptr table = Allocated(4096), end = buffer_ + kBufferBytes;
  void* written[] = {&table, &end};
  EXPECT_EQ(Launch(Function("write_table"), nullptr, written), CUDA_SUCCESS);
  Settle();
  void* parameters[] = {&table};
  AddWhenEvicted(Function("add_before_table"), parameters);
}

TEST_F(HiddenPointersTest, PinnedTableThatAKernelGaveTheEndOfTheBuffer) {
  CUdeviceptr table = PinnedTable(), end = buffer_ + kBufferBytes;
  void* written[] = {&table, &end};
  EXPECT_EQ(Launch(Function("write_table"), nullptr, written), CUDA_SUCCESS);
  Settle();
  void* parameters[] = {&table};
  AddWhenEvicted(Function("add_before_table"), parameters);
}

TEST_F(HiddenPointersTest, DeviceVariableSetWhenTheJobIsProven) {
  Settle();
  void* parameters[] = {&buffer_};
  EXPECT_EQ(Launch(Function("set"), nullptr, parameters), CUDA_SUCCESS);
  AddInRounds(Function("add_by_slot"), nullptr);
}

TEST_F(HiddenPointersTest, DeviceVariableSetThroughAnInitialiser) {
  void* parameters[] = {&buffer_};
  EXPECT_EQ(Launch(Function("set_by_way"), nullptr, parameters), CUDA_SUCCESS);
  Settle();
  AddInRounds(Function("add_by_slot"), nullptr);
}

TEST_F(HiddenPointersTest, DeviceVariableSetByACopy) {
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  ASSERT_EQ(cuModuleGetGlobal(&variable, &bytes, module_, "slot"), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyHtoD(variable, &buffer_, sizeof buffer_), CUDA_SUCCESS);
  Settle();
  AddInRounds(Function("add_by_slot"), nullptr);
}

TEST_F(HiddenPointersTest, DeviceVariableOfALibrary) {
  CUlibrary library = nullptr;
  ASSERT_EQ(cuLibraryLoadData(&library, simulator::ModuleElfOf(kImage), nullptr, nullptr, 0,
                              nullptr, nullptr, 0),
            CUDA_SUCCESS);
  CUkernel set = nullptr, add = nullptr;
  ASSERT_EQ(cuLibraryGetKernel(&set, library, "set"), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryGetKernel(&add, library, "add_by_slot"), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryGetModule(&module_, library), CUDA_SUCCESS);
  void* parameters[] = {&buffer_};
  EXPECT_EQ(Launch(reinterpret_cast<CUfunction>(set), nullptr, parameters), CUDA_SUCCESS);
  Settle();
  AddInRounds(reinterpret_cast<CUfunction>(add), nullptr);
}

// A plan may evict the buffer while the kernel runs, which decision 6 names as a gap.
class HiddenPointersWithoutPlansTest : public HiddenPointersTest {
 protected:
  void SetUp() override {
    setenv("SPILLWAY_LEARN", "off", 1);
    HiddenPointersTest::SetUp();
  }
};

// No scan can find such an address, but writes to resident memory must not be lost.
TEST_F(HiddenPointersWithoutPlansTest, AddressThatAKernelStoresEncoded) {
  void* parameters[] = {&buffer_};
  EXPECT_EQ(Launch(Function("set_masked"), nullptr, parameters), CUDA_SUCCESS);
  Settle();
  for (int i = 0; i < kAdditions; ++i) {
    EXPECT_EQ(cuMemcpyDtoD(scratch_, buffer_, kBufferBytes), CUDA_SUCCESS);
    EXPECT_EQ(Launch(Function("add_by_masked"), nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    TouchOthers();
  }
  EXPECT_TRUE(IsAll(buffer_, kBufferBytes, kFirst + kAdditions));
}

TEST_F(HiddenPointersTest, PinnedTableWrittenByTheHost) {
  const CUdeviceptr table = PinnedTable();
  HostWrites(table, buffer_);
  AddThroughTable(table);
}

TEST_F(HiddenPointersTest, PinnedTableWrittenByTheHostWhileTheBufferIsEvicted) {
  const CUdeviceptr table = PinnedTable();
  HostWrites(table, buffer_);
  AddThroughTableWhenEvicted(table);
}

TEST_F(HiddenPointersTest, PinnedTableWrittenByAKernel) {
  CUdeviceptr table = PinnedTable();
  void* parameters[] = {&table, &buffer_};
  EXPECT_EQ(Launch(Function("write_table"), nullptr, parameters), CUDA_SUCCESS);
  AddThroughTable(table);
}

TEST_F(HiddenPointersTest, PinnedTableFilledByACopyBehindARunningKernel) {
  const CUdeviceptr table = PinnedTable(), source = Allocated(4096);
  EXPECT_EQ(cuMemcpyHtoD(source, &buffer_, sizeof buffer_), CUDA_SUCCESS);
  Settle();
  CUdeviceptr argument = table;
  void* parameters[] = {&argument};
  TouchOthers();
  EXPECT_EQ(cuMemcpyDtoHAsync(reinterpret_cast<void*>(table), source, sizeof buffer_, nullptr),
            CUDA_SUCCESS);
  AddInRounds(Function("add_by_table"), parameters);
}

TEST_F(HiddenPointersTest, PinnedTableBehindAPointerInDeviceMemory) {
  const CUdeviceptr table = PinnedTable();
  HostWrites(table, buffer_);
  CUdeviceptr cell = Allocated(4096);
  EXPECT_EQ(cuMemcpyHtoD(cell, &table, sizeof table), CUDA_SUCCESS);
  Settle();
  void* parameters[] = {&cell};
  AddWhenEvicted(Function("add_by_way_of_table"), parameters);
}

TEST_F(HiddenPointersTest, ManagedTableWrittenByTheHost) {
  const CUdeviceptr table = ManagedTable();
  HostWrites(table, buffer_);
  AddThroughTable(table);
}

TEST_F(HiddenPointersTest, ManagedTableWrittenByTheHostWhileTheBufferIsEvicted) {
  const CUdeviceptr table = ManagedTable();
  HostWrites(table, buffer_);
  AddThroughTableWhenEvicted(table);
}

TEST_F(HiddenPointersTest, RegisteredTableWrittenByTheHost) {
  const CUdeviceptr table = RegisteredTable();
  HostWrites(table, buffer_);
  AddThroughTable(table);
  EXPECT_EQ(cuMemHostUnregister(page_), CUDA_SUCCESS);
}

TEST_F(HiddenPointersTest, TableFarInsideLargePinnedMemory) {
  void* memory = nullptr;
  ASSERT_EQ(cuMemHostAlloc(&memory, 16 * kMiB, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
  const CUdeviceptr table = reinterpret_cast<CUdeviceptr>(memory) + 5 * kMiB + 40'000;
  HostWrites(table, buffer_);
  AddThroughTable(table);
}

}  // namespace
}  // namespace spillway::regressions
