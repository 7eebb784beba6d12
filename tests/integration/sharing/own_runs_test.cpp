// Mappings of the program's next to each other (runs) stay while the job computes, leave as a whole
// when it does not, and are whole again before a call uses any part of them.
//
// A launch stands for the moment: the schedule changes the budget just before it, as the agent does
// for an idle job.
#include <string>
#include <vector>

#include "tests/regressions/job.h"

namespace spillway::regressions {
namespace {

constexpr size_t kBytes = 16 * kMiB;
constexpr int kPieces = 3;

// Writes one word of the memory, as far behind the address as the program says.
void Write(const simulator::LaunchShape&, void* const* arguments) {
  auto* words = *static_cast<std::uint32_t* const*>(arguments[0]);
  const std::uint64_t at = *static_cast<const std::uint64_t*>(arguments[1]);
  words[at] = *static_cast<const std::uint32_t*>(arguments[2]);
}
constexpr simulator::KernelParameter kParameters[] = {{0, 8}, {8, 8}, {16, 4}};
SPILLWAY_ONE_KERNEL(kWriteImage, "write_far", Write, nullptr, 3, kParameters);

class OwnRunsTest : public JobTest {
 protected:
  // Before the n-th launch the budget becomes the n-th size. 0: it stays.
  void StartWith(const std::vector<size_t>& mib, size_t first_mib = 64) {
    SetSize("SPILLWAY_BUDGET", first_mib * kMiB);
    std::string changes;
    for (size_t i = 0; i < mib.size(); ++i) {
      if (mib[i] > 0)
        changes += (changes.empty() ? "" : ",") + std::to_string(i + 1) + ":" +
                   std::to_string(mib[i] * kMiB);
    }
    setenv("SPILLWAY_BUDGET_SCHEDULE", changes.c_str(), 1);
    setenv("SPILLWAY_PARK", "off", 0);
    Start();
    write_ = Kernel(&kWriteImage, "write_far");
    small_ = Filled(4096, 0);
  }

  static CUmemGenericAllocationHandle Created() {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, kBytes, &properties, 0), CUDA_SUCCESS);
    return handle;
  }
  static CUresult MapAt(CUdeviceptr base, CUmemGenericAllocationHandle handle) {
    if (const CUresult result = cuMemMap(base, kBytes, 0, handle, 0); result != CUDA_SUCCESS)
      return result;
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return cuMemSetAccess(base, kBytes, &access, 1);
  }
  void MapRun(int pieces = kPieces) {
    ASSERT_EQ(cuMemAddressReserve(&run_, 8 * kBytes, 0, 0, 0), CUDA_SUCCESS);
    for (int i = 0; i < pieces; ++i) {
      handles_.push_back(Created());
      ASSERT_EQ(MapAt(Piece(i), handles_.back()), CUDA_SUCCESS);
      ASSERT_EQ(cuMemsetD32(Piece(i), 10 + i, kBytes / 4), CUDA_SUCCESS);
    }
  }
  CUdeviceptr Piece(int number) const { return run_ + number * kBytes; }

  CUresult WriteFar(CUdeviceptr from, std::uint64_t word, std::uint32_t value,
                    CUstream stream = nullptr) const {
    void* parameters[] = {&from, &word, &value};
    return Launch(write_, stream, parameters);
  }
  // A launch that uses other memory: the moment at which the budget changes.
  void Pass() const {
    ASSERT_EQ(WriteFar(small_, 0, 1), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  static size_t HeldBytes() { return Statistics("device_bytes_now"); }
  void ExpectWhole(int pieces = kPieces) const {
    for (int i = 0; i < pieces; ++i)
      EXPECT_TRUE(IsAll(Piece(i), kBytes, static_cast<std::uint32_t>(10 + i))) << i;
  }

  CUfunction write_ = nullptr;
  CUdeviceptr small_ = 0, run_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;
};

TEST_F(OwnRunsTest, LeavesWholeAndIsWholeBeforeItsFirstUse) {
  StartWith({16, 64});
  MapRun();
  Pass();
  EXPECT_LE(HeldBytes(), 16 * kMiB);
  // The call names the first piece, and writes the last one.
  ASSERT_EQ(WriteFar(run_, 2 * kBytes / 4 + 5, 77), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_GE(HeldBytes(), kPieces * kBytes);
  std::uint32_t word = 0;
  ASSERT_EQ(cuMemcpyDtoH(&word, Piece(2) + 5 * 4, 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 77U);
  ASSERT_EQ(cuMemsetD32(Piece(2) + 5 * 4, 12, 1), CUDA_SUCCESS);
  ExpectWhole();
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

// What a call wrote to a piece that it did not name must not be lost with the next leave.
TEST_F(OwnRunsTest, LeavesAgainWithWhatCallsWroteUnnamed) {
  StartWith({16, 64, 0, 16, 64});
  MapRun();
  Pass();
  for (const std::uint32_t value : {70U, 71U})
    ASSERT_EQ(WriteFar(run_, 2 * kBytes / 4, value), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  Pass();
  EXPECT_LE(HeldBytes(), 16 * kMiB);
  ASSERT_EQ(WriteFar(run_, 0, 72), CUDA_SUCCESS);
  std::uint32_t word = 0;
  ASSERT_EQ(cuMemcpyDtoH(&word, Piece(2), 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 71U);
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

// Read by the call that brought them back, their copies on the host are still good then. A set that
// begins in one piece and ends in the next outdates both.
TEST_F(OwnRunsTest, SetsBeyondAPieceOutdateItsHostCopy) {
  StartWith({16, 64, 16, 64});
  MapRun();
  Pass();
  Pass();
  std::uint32_t word = 0;
  CUdeviceptr copy = Filled(4096, 0);
  ASSERT_EQ(cuMemcpyDtoD(copy, Piece(1), 4), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32(Piece(0), 90, 2 * kBytes / 4), CUDA_SUCCESS);
  Pass();
  EXPECT_LE(HeldBytes(), 16 * kMiB);
  Pass();
  ASSERT_EQ(cuMemcpyDtoH(&word, Piece(1), 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 90U);
}

// It stays while the job computes, whatever else the job wants.
TEST_F(OwnRunsTest, StaysWhileTheJobComputes) {
  StartWith({});
  MapRun();
  const auto buffers = FilledBuffers(4, 8 * kMiB);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(WriteFar(run_, 2 * kBytes / 4, 12), CUDA_SUCCESS);
  for (unsigned int i = 0; i < buffers.size(); ++i)
    EXPECT_TRUE(IsAll(buffers[i], 8 * kMiB, i)) << i;
  ExpectWhole();
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

TEST_F(OwnRunsTest, GrowsAndShrinksWhileItIsAway) {
  StartWith({16, 128});
  MapRun();
  Pass();
  ASSERT_EQ(cuMemUnmap(Piece(0), kBytes), CUDA_SUCCESS);  // needs no memory
  EXPECT_LE(HeldBytes(), 16 * kMiB);
  ASSERT_EQ(cuMemRelease(handles_[0]), CUDA_SUCCESS);
  Pass();
  ASSERT_EQ(MapAt(Piece(3), Created()), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32(Piece(3), 13, kBytes / 4), CUDA_SUCCESS);
  ASSERT_EQ(WriteFar(Piece(1), 2 * kBytes / 4, 13), CUDA_SUCCESS);
  for (int i = 1; i < 4; ++i)
    EXPECT_TRUE(IsAll(Piece(i), kBytes, static_cast<std::uint32_t>(10 + i))) << i;
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

// The pieces on both sides of a gap are two runs.
TEST_F(OwnRunsTest, PartsWithAGapReturnOnTheirOwn) {
  StartWith({16, 48}, 128);
  MapRun(5);
  Pass();
  ASSERT_EQ(cuMemUnmap(Piece(2), kBytes), CUDA_SUCCESS);
  ASSERT_EQ(WriteFar(Piece(0), kBytes / 4, 11), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_LE(HeldBytes(), 48 * kMiB);
  for (const int i : {0, 1})
    EXPECT_TRUE(IsAll(Piece(i), kBytes, static_cast<std::uint32_t>(10 + i))) << i;
  ASSERT_EQ(MapAt(Piece(5), handles_[2]), CUDA_ERROR_OUT_OF_MEMORY) << "both parts do not fit";
  for (const int i : {0, 1})
    EXPECT_TRUE(IsAll(Piece(i), kBytes, static_cast<std::uint32_t>(10 + i))) << i;
}

TEST_F(OwnRunsTest, ABudgetBelowItIsAnsweredWithOutOfMemory) {
  StartWith({16, 32, 64});
  MapRun();
  Pass();
  EXPECT_EQ(WriteFar(run_, 0, 10), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_LE(HeldBytes(), 32 * kMiB);
  EXPECT_EQ(WriteFar(run_, 2 * kBytes / 4, 12), CUDA_SUCCESS);
  ExpectWhole();
}

// Slower, but not refused.
TEST_F(OwnRunsTest, ABudgetBelowItIsNoObstacleWhereMemoryMayBeParked) {
  setenv("SPILLWAY_PARK", "auto", 1);
  StartWith({16, 32});
  MapRun();
  Pass();
  EXPECT_EQ(WriteFar(run_, 2 * kBytes / 4, 12), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_LE(HeldBytes(), 32 * kMiB);
  ExpectWhole();
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

// More memory is refused while the run is away, as while it is there: it would not fit beside it.
TEST_F(OwnRunsTest, MoreMemoryIsRefusedWhileItIsAway) {
  StartWith({16, 64});
  MapRun();
  Pass();
  Pass();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle fourth = 0;
  EXPECT_EQ(cuMemCreate(&fourth, kBytes, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ExpectWhole();
}

TEST_F(OwnRunsTest, StaysWithAnExportedPiece) {
  StartWith({16});
  MapRun();
  int file = -1;
  ASSERT_EQ(
      cuMemExportToShareableHandle(&file, handles_[1], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_SUCCESS);
  ASSERT_EQ(WriteFar(small_, 0, 1), CUDA_SUCCESS);
  EXPECT_GE(HeldBytes(), kPieces * kBytes);
  ExpectWhole();
}

TEST_F(OwnRunsTest, IsWholeBeforeAPieceIsExported) {
  StartWith({16, 64});
  MapRun();
  Pass();
  Pass();
  int file = -1;
  ASSERT_EQ(
      cuMemExportToShareableHandle(&file, handles_[1], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_SUCCESS);
  EXPECT_GE(HeldBytes(), kPieces * kBytes);
  ExpectWhole();
}

// Work in progress when the run is to leave may use any piece of it.
TEST_F(OwnRunsTest, LeavesBehindTheWorkInProgress) {
  StartWith({0, 16, 64});
  MapRun();
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(WriteFar(run_, 2 * kBytes / 4, 80, stream), CUDA_SUCCESS);
  ASSERT_EQ(WriteFar(small_, 0, 1), CUDA_SUCCESS);
  EXPECT_LE(HeldBytes(), 16 * kMiB);
  ASSERT_EQ(WriteFar(run_, 0, 81), CUDA_SUCCESS);
  std::uint32_t word = 0;
  ASSERT_EQ(cuMemcpyDtoH(&word, Piece(2), 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 80U);
  EXPECT_EQ(Statistics("unmapped_while_in_use"), 0U);
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

// Another stream's call, which names another piece, waits for the copies that restore the first.
TEST_F(OwnRunsTest, AllStreamsWaitForAllOfIt) {
  StartWith({16, 64});
  MapRun();
  CUstream streams[2] = {};
  for (CUstream& stream : streams)
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  Pass();
  ASSERT_EQ(WriteFar(Piece(0), 0, 10, streams[0]), CUDA_SUCCESS);
  ASSERT_EQ(WriteFar(Piece(0), 2 * kBytes / 4 + 9, 99, streams[1]), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  std::uint32_t word = 0;
  ASSERT_EQ(cuMemcpyDtoH(&word, Piece(2) + 9 * 4, 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 99U);
}

TEST_F(OwnRunsTest, ALaunchedGraphBringsItBack) {
  StartWith({0, 16, 64});
  MapRun();
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_EQ(WriteFar(run_, 2 * kBytes / 4, 33, stream), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphExec program = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&program, graph, 0), CUDA_SUCCESS);
  Pass();
  EXPECT_LE(HeldBytes(), 16 * kMiB);
  ASSERT_EQ(cuGraphLaunch(program, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  std::uint32_t word = 0;
  ASSERT_EQ(cuMemcpyDtoH(&word, Piece(2), 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 33U);
  EXPECT_EQ(Statistics("illegal_accesses"), 0U);
}

// The driver keeps such memory when its context ends.
TEST_F(OwnRunsTest, OutlivesAResetWhileItIsAway) {
  StartWith({16});
  MapRun();
  Pass();
  EXPECT_LE(HeldBytes(), 16 * kMiB);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  ExpectWhole();
}

// What the program is told is free does not change with what is away.
TEST_F(OwnRunsTest, FreeMemoryIsAsWhileTheJobComputes) {
  StartWith({0, 16, 0, 64});
  MapRun();
  size_t before = 0, away = 0, total = 0;
  Pass();
  ASSERT_EQ(cuMemGetInfo(&before, &total), CUDA_SUCCESS);
  Pass();
  Pass();
  ASSERT_EQ(WriteFar(small_, 0, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetInfo(&away, &total), CUDA_SUCCESS);
  EXPECT_EQ(away, before);
}

}  // namespace
}  // namespace spillway::regressions
