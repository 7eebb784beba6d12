// One library call on evicted memory: what it copies, and whether every byte is as it should be.
//
// A case runs the call twice on equal contents: on memory that was never evicted, then on evicted
// memory. Kernels run in the compute mode `tags`, so a lost byte changes a result.
#pragma once

#include <cuda.h>
#include <cudnn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/statistics.h"

namespace spillway::test {

// What a call does with a buffer, for the preload library.
enum class Part : std::uint8_t {
  kReads,       // restored; not copied out again
  kOverwrites,  // not restored
  kUnknown,     // restored, and copied out again
  kWorkspace,   // neither: its bytes mean nothing before and after the call
};

// A call's buffers, in order: the part of each, and its bytes.
struct Operand {
  Part part;
  std::size_t bytes;
};

// Where each operand lies: an offset in one of the allocations.
struct Place {
  std::size_t allocation, offset_bytes;
};
struct Layout {
  std::vector<std::size_t> allocation_bytes;
  std::vector<Place> places;
  std::vector<bool> is_workspace = {};  // by allocation
};

inline Layout Apart(const std::vector<Operand>& operands) {
  Layout layout;
  for (const Operand& operand : operands) {
    layout.places.push_back({layout.allocation_bytes.size(), 0});
    layout.allocation_bytes.push_back(operand.bytes);
    layout.is_workspace.push_back(operand.part == Part::kWorkspace);
  }
  return layout;
}

// As Apart, but the operand has an allocation that begins before it and ends behind it.
inline Layout Inside(const std::vector<Operand>& operands, std::size_t operand) {
  Layout layout = Apart(operands);
  layout.places[operand].offset_bytes = 256;
  layout.allocation_bytes[operand] += 512;
  return layout;
}

// The first of the two begins `offset_bytes` behind the other's beginning.
inline Layout Together(const std::vector<Operand>& operands, std::size_t one, std::size_t other,
                       std::size_t offset_bytes) {
  Layout layout = Apart(operands);
  layout.places[one] = {other, offset_bytes};
  std::size_t& bytes = layout.allocation_bytes[other];
  bytes = std::max(bytes, offset_bytes + operands[one].bytes);
  return layout;
}

class EvictedRolesTest : public testing::Test {
 protected:
  static constexpr std::size_t kMiB = std::size_t{1} << 20;
  using Call = std::function<void(const std::vector<void*>& operands)>;
  using Contents = std::vector<std::vector<std::uint8_t>>;
  struct Traffic {
    unsigned long long restored;    // by the call
    unsigned long long copied_out;  // when all memory is evicted after it
  };

  static constexpr std::size_t kSlabBytes = 2 * kMiB, kWorkspaceBytes = 4 * kMiB;
  static std::size_t Granules(std::size_t bytes) {
    return (bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
  }
  // For any layout, with a workspace and a slab of small allocations: each eviction fills all of
  // it.
  static std::size_t BudgetFor(const std::vector<Operand>& operands) {
    std::size_t bytes = kSlabBytes + kWorkspaceBytes;
    for (const Operand& operand : operands) bytes += 2 * Granules(operand.bytes);
    return bytes;
  }
  virtual std::size_t BudgetBytes() const { return 16 * kMiB; }

  void SetUp() override {
    budget_bytes_ = BudgetBytes();
    setenv("SPILLWAY_DRIVER", SimulatedDriver().c_str(), 1);
    setenv("SPILLWAY_SIM_PROFILE", "a100", 1);
    setenv("SPILLWAY_SIM_COMPUTE", "tags", 1);
    setenv("SPILLWAY_BUDGET", std::to_string(budget_bytes_).c_str(), 1);
    setenv("SPILLWAY_PARK", "off", 1);
    CUcontext context = nullptr;
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cudnnCreate(&cudnn_), CUDNN_STATUS_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&small_, 256), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&others_, OthersBytes()), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_LE(Statistics("device_bytes_peak"), budget_bytes_);
    EXPECT_EQ(Statistics("illegal_accesses"), 0u);
  }

  // Bytes must be as if nothing had been evicted.
  Traffic Check(const Layout& layout, const Call& call) {
    const Contents before = InitialContents(layout);
    const Contents expected = [&] {
      const Memory memory(layout, before);
      Run(call, memory);
      return memory.Read();
    }();
    const Memory memory(layout, before);
    EvictAll();
    const Traffic traffic = {Counting("h2d_bytes", [&] { Run(call, memory); }),
                             Counting("d2h_bytes", [&] { EvictAll(); })};
    const Contents after = memory.Read();
    for (std::size_t i = 0; i < after.size(); ++i)
      EXPECT_TRUE(layout.is_workspace[i] || after[i] == expected[i]) << "allocation " << i;
    return traffic;
  }
  void ExpectTrafficOf(const std::vector<Operand>& operands, const Traffic& traffic) {
    unsigned long long restored = 0, copied_out = 0;
    for (const Operand& operand : operands) {
      const bool is_workspace = operand.part == Part::kWorkspace;
      restored += operand.part == Part::kOverwrites || is_workspace ? 0 : operand.bytes;
      copied_out += operand.part == Part::kReads || is_workspace ? 0 : operand.bytes;
    }
    EXPECT_EQ(traffic.restored, restored);
    EXPECT_EQ(traffic.copied_out, copied_out);
  }

  cudnnHandle_t cudnn_ = nullptr;

 private:
  // All of the budget but a slab of small allocations, so that any other memory is evicted.
  std::size_t OthersBytes() const { return budget_bytes_ - kSlabBytes; }

  class Memory {
   public:
    Memory(const Layout& layout, const Contents& contents) : contents_(contents) {
      for (const auto& bytes : contents_) {
        CUdeviceptr base = 0;
        EXPECT_EQ(cuMemAlloc(&base, bytes.size()), CUDA_SUCCESS);
        EXPECT_EQ(cuMemcpyHtoD(base, bytes.data(), bytes.size()), CUDA_SUCCESS);
        bases_.push_back(base);
      }
      for (const Place& place : layout.places)
        operands_.push_back(reinterpret_cast<void*>(bases_[place.allocation] + place.offset_bytes));
    }
    ~Memory() {
      for (const CUdeviceptr base : bases_) EXPECT_EQ(cuMemFree(base), CUDA_SUCCESS);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    const std::vector<void*>& operands() const { return operands_; }
    Contents Read() const {
      Contents read = contents_;
      for (std::size_t i = 0; i < read.size(); ++i)
        EXPECT_EQ(cuMemcpyDtoH(read[i].data(), bases_[i], read[i].size()), CUDA_SUCCESS);
      return read;
    }

   private:
    const Contents& contents_;
    std::vector<CUdeviceptr> bases_;
    std::vector<void*> operands_;
  };

  static Contents InitialContents(const Layout& layout) {
    Contents contents;
    std::uint64_t word = 1;
    for (const std::size_t bytes : layout.allocation_bytes) {
      std::vector<std::uint8_t>& content = contents.emplace_back(bytes);
      for (std::size_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        std::memcpy(content.data() + at, &word, sizeof(word));
      }
    }
    return contents;
  }
  static void Run(const Call& call, const Memory& memory) {
    call(memory.operands());
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  // A set overwrites memory, so it is not restored.
  void EvictAll() {
    EXPECT_EQ(cuMemsetD8(others_, 0, OthersBytes()), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  static unsigned long long Counting(const char* key, const std::function<void()>& work) {
    const unsigned long long before = Statistics(key);
    work();
    return Statistics(key) - before;
  }

  std::size_t budget_bytes_ = 0;
  CUdeviceptr small_ = 0, others_ = 0;
};

}  // namespace spillway::test
