// Programs that passed kernels an address beside the memory that they use (the end of an array, the
// element before the first), or one in a packed struct or in two halves, ended with an illegal
// address.
//
// Without parking: evicted memory that a launch does not name has no mapping.
#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

using simulator::Image;
using simulator::KernelEntry;
using simulator::KernelParameter;
using simulator::LaunchShape;

constexpr size_t kBytes = 8 * kMiB;
constexpr int kOthers = 12;  // 96 MiB beside the buffer, of a budget of 64

struct [[gnu::packed]] Packed {
  char kind;
  std::uint32_t* words;
  short rest;
};

void AddAt(const LaunchShape&, void* const* arguments) {
  const auto index = *static_cast<const std::int64_t*>(arguments[1]);
  ++(*static_cast<std::uint32_t* const*>(arguments[0]))[index];
}
void AddByPacked(const LaunchShape&, void* const* arguments) {
  ++*static_cast<const Packed*>(arguments[0])->words;
}
void AddByHalves(const LaunchShape&, void* const* arguments) {
  const CUdeviceptr upper = *static_cast<const std::uint32_t*>(arguments[1]);
  ++*reinterpret_cast<std::uint32_t*>(upper << 32 |
                                      *static_cast<const std::uint32_t*>(arguments[0]));
}
void AddByTable(const LaunchShape&, void* const* arguments) {
  const auto index = *static_cast<const std::int64_t*>(arguments[1]);
  ++(**static_cast<std::uint32_t** const*>(arguments[0]))[index];
}
// ++*table[index]
void AddByWord(const LaunchShape&, void* const* arguments) {
  const auto index = *static_cast<const std::int64_t*>(arguments[1]);
  ++*(*static_cast<std::uint32_t** const*>(arguments[0]))[index];
}
constexpr KernelParameter kAtParameters[] = {{0, 8}, {8, 8}};
constexpr KernelParameter kPackedParameters[] = {{0, sizeof(Packed)}};
constexpr KernelParameter kPackedAndCountParameters[] = {{0, sizeof(Packed)}, {16, 8}};
constexpr KernelParameter kHalvesParameters[] = {{0, 4}, {4, 4}};
const KernelEntry kKernels[] = {
    {"add_at", AddAt, nullptr, 2, kAtParameters},
    {"add_by_table", AddByTable, nullptr, 2, kAtParameters},
    {"add_by_word", AddByWord, nullptr, 2, kAtParameters},
    {"add_by_packed", AddByPacked, nullptr, 1, kPackedParameters},
    {"add_by_halves", AddByHalves, nullptr, 2, kHalvesParameters},
    {"add_by_packed_and_count", AddByPacked, nullptr, 2, kPackedAndCountParameters}};
const Image kImage = {{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 6, kKernels, 0, nullptr};

class AdjacentAddressesTest : public JobTest {
 protected:
  void SetUp() override {
    JobTest::SetUp();
    setenv("SPILLWAY_PARK", "off", 1);
    Start();
    buffer_ = Filled(kBytes, 8);
    FilledBuffers(kOthers, kBytes);  // evicts the buffer
  }
  void TearDown() override {
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
    EXPECT_EQ(Statistics("unmapped_while_in_use"), 0u);
    EXPECT_LE(Statistics("device_bytes_peak"), 64 * kMiB);
  }
  void LaunchAt(CUdeviceptr address, std::int64_t index) {
    void* parameters[] = {&address, &index};
    EXPECT_EQ(Launch(Kernel(&kImage, "add_at"), nullptr, parameters), CUDA_SUCCESS);
  }
  void LaunchAtPinned(std::int64_t place, std::int64_t from) {
    CUdeviceptr* table = nullptr;
    ASSERT_EQ(cuMemHostAlloc(reinterpret_cast<void**>(&table), 4096, CU_MEMHOSTALLOC_DEVICEMAP),
              CUDA_SUCCESS);
    LaunchAtTable(table, place, from);
  }
  // The kernel is given the address of the word at `from`.
  void LaunchAtTable(CUdeviceptr* table, std::int64_t place, std::int64_t from) {
    table[place] = buffer_;
    CUdeviceptr* given = table + from;
    std::int64_t index = place - from;
    void* parameters[] = {&given, &index};
    EXPECT_EQ(Launch(Kernel(&kImage, "add_by_word"), nullptr, parameters), CUDA_SUCCESS);
  }
  std::uint32_t WordAt(size_t index) const {
    std::uint32_t word = 0;
    EXPECT_EQ(cuMemcpyDtoH(&word, buffer_ + 4 * index, sizeof word), CUDA_SUCCESS);
    return word;
  }

  CUdeviceptr buffer_ = 0;
};

TEST_F(AdjacentAddressesTest, KernelCountsDownFromTheEnd) {
  LaunchAt(buffer_ + kBytes, -1);
  EXPECT_EQ(WordAt(kBytes / 4 - 1), 9u);
}

TEST_F(AdjacentAddressesTest, KernelCountsFromOne) {
  LaunchAt(buffer_ - 4, 1);
  EXPECT_EQ(WordAt(0), 9u);
}

TEST_F(AdjacentAddressesTest, KernelReadsFromAHaloBeforeTheBuffer) {
  LaunchAt(buffer_ - 4096, 1024);
  EXPECT_EQ(WordAt(0), 9u);
}

TEST_F(AdjacentAddressesTest, TableHoldsTheEndOfABuffer) {
  const CUdeviceptr end = buffer_ + kBytes;
  CUdeviceptr table = Allocated(4096);
  EXPECT_EQ(cuMemcpyHtoD(table, &end, sizeof end), CUDA_SUCCESS);
  std::int64_t index = -1;
  void* parameters[] = {&table, &index};
  EXPECT_EQ(Launch(Kernel(&kImage, "add_by_table"), nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(WordAt(kBytes / 4 - 1), 9u);
}

// The host writes the table's memory.
TEST_F(AdjacentAddressesTest, PinnedTableIsGivenByItsEnd) {
  LaunchAtPinned(511, 512);
  EXPECT_EQ(WordAt(0), 9u);
}

// The end of the table's memory is where that of another begins.
TEST_F(AdjacentAddressesTest, RegisteredTableIsGivenByItsEndWhereOtherMemoryBegins) {
  alignas(4096) static CUdeviceptr pages[1024] = {};
  ASSERT_EQ(cuMemHostRegister(pages, 4096, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
  ASSERT_EQ(cuMemHostRegister(pages + 512, 4096, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
  LaunchAtTable(pages, 511, 512);
  EXPECT_EQ(WordAt(0), 9u);
}

TEST_F(AdjacentAddressesTest, PinnedTableIsGivenByThePlaceBeforeIt) {
  LaunchAtPinned(0, -1);
  EXPECT_EQ(WordAt(0), 9u);
}

TEST_F(AdjacentAddressesTest, AddressBehindOneByteOfAPackedStruct) {
  Packed packed{1, reinterpret_cast<std::uint32_t*>(buffer_), 2};
  void* parameters[] = {&packed};
  EXPECT_EQ(Launch(Kernel(&kImage, "add_by_packed"), nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(WordAt(0), 9u);
}

// The buffer's size says nothing of the struct in it.
TEST_F(AdjacentAddressesTest, AddressBehindOneByteOfAPackedStructInABufferOfParameters) {
  struct {
    Packed packed;
    alignas(8) std::int64_t count;
  } buffer{{1, reinterpret_cast<std::uint32_t*>(buffer_), 2}, 1};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  EXPECT_EQ(cuLaunchKernel(Kernel(&kImage, "add_by_packed_and_count"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                           nullptr, extra),
            CUDA_SUCCESS);
  EXPECT_EQ(WordAt(0), 9u);
}

TEST_F(AdjacentAddressesTest, AddressInTwoHalves) {
  auto lower = static_cast<std::uint32_t>(buffer_),
       upper = static_cast<std::uint32_t>(buffer_ >> 32);
  void* parameters[] = {&lower, &upper};
  EXPECT_EQ(Launch(Kernel(&kImage, "add_by_halves"), nullptr, parameters), CUDA_SUCCESS);
  EXPECT_EQ(WordAt(0), 9u);
}

}  // namespace
}  // namespace spillway::regressions
