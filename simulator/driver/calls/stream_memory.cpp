#include "simulator/driver/calls/stream_memory.h"

#include <atomic>
#include <type_traits>

#include "simulator/driver/calls/copy.h"

namespace spillway::simulator {
namespace {

template <class Word>
Word Load(CUdeviceptr address) {
  return reinterpret_cast<std::atomic<Word>*>(address)->load(std::memory_order_acquire);
}

template <class Word>
bool Satisfied(Word found, Word wanted, unsigned condition) {
  switch (condition) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<Word>>(found - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return found == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
      return (found & wanted) != 0;
    default:
      return static_cast<Word>(~(found | wanted)) != 0;
  }
}

void RequireWord(Simulator& sim, CUdeviceptr address, std::size_t bytes) {
  Require(address % bytes == 0 && IsDeviceAccessible(sim, address, bytes, true));
}

template <class Word>
Operation MakeWait(Simulator& sim, CUdeviceptr address, Word value, unsigned flags) {
  constexpr unsigned kConditions = 0x3;
  Require((flags & ~(kConditions | unsigned{CU_STREAM_WAIT_VALUE_FLUSH})) == 0);
  RequireWord(sim, address, sizeof(Word));
  Operation wait;
  wait.name = "wait for a value";
  wait.resource = Resource::kExternalWait;
  wait.extents = {{address, sizeof(Word), false}};
  const auto readable = [&sim, address] {
    return IsDeviceAccessible(sim, address, sizeof(Word), false);
  };
  wait.condition = [=] {
    return !readable() || Satisfied<Word>(Load<Word>(address), value, flags & kConditions);
  };
  wait.effect = [=] {
    if (!readable()) throw Fault{address};
  };
  return wait;
}

template <class Word>
Operation MakeWrite(Simulator& sim, CUdeviceptr address, Word value, unsigned flags) {
  Require((flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) == 0);
  RequireWord(sim, address, sizeof(Word));
  Operation write;
  write.name = "write of a value";
  write.extents = {{address, sizeof(Word), true}};
  write.effect = [&sim, address, value] {
    if (!IsDeviceAccessible(sim, address, sizeof(Word), true)) throw Fault{address};
    reinterpret_cast<std::atomic<Word>*>(address)->store(value, std::memory_order_release);
  };
  return write;
}

}  // namespace

Operation MakeMemoryOperation(Simulator& sim, const CUstreamBatchMemOpParams& one) {
  switch (one.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return MakeWait<std::uint32_t>(sim, one.waitValue.address, one.waitValue.value,
                                     one.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return MakeWait<std::uint64_t>(sim, one.waitValue.address, one.waitValue.value64,
                                     one.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return MakeWrite<std::uint32_t>(sim, one.writeValue.address, one.writeValue.value,
                                      one.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return MakeWrite<std::uint64_t>(sim, one.writeValue.address, one.writeValue.value64,
                                      one.writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: {
      Operation nothing;
      nothing.name = "memory barrier";
      return nothing;
    }
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

}  // namespace spillway::simulator
