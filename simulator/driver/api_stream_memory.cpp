// Stream memory operations: a stream writes a word, or waits until a word has a value.
#include <atomic>

#include "simulator/driver/copy.h"

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

void RequireWord(Call& call, CUdeviceptr address, std::size_t bytes) {
  Require(address % bytes == 0 && IsDeviceAccessible(call.sim, address, bytes, true));
}

template <class Word>
void SubmitWait(Call& call, CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  constexpr unsigned kConditions = 0x3;
  Require((flags & ~(kConditions | unsigned{CU_STREAM_WAIT_VALUE_FLUSH})) == 0);
  RequireWord(call, address, sizeof(Word));
  Operation wait;
  wait.name = "wait for a value";
  wait.resource = Resource::kExternalWait;
  wait.extents = {{address, sizeof(Word), false}};
  Simulator& sim = call.sim;
  const auto readable = [&sim, address] { return IsDeviceAccessible(sim, address, sizeof(Word), false); };
  wait.condition = [=] {
    return !readable() || Satisfied<Word>(Load<Word>(address), value, flags & kConditions);
  };
  wait.effect = [=] {
    if (!readable()) throw Fault{address};
  };
  call.Submit(call.StreamOf(stream), std::move(wait));
}

template <class Word>
void SubmitWrite(Call& call, CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  Require((flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) == 0);
  RequireWord(call, address, sizeof(Word));
  Operation write;
  write.name = "write of a value";
  write.extents = {{address, sizeof(Word), true}};
  Simulator& sim = call.sim;
  write.effect = [&sim, address, value] {
    if (!IsDeviceAccessible(sim, address, sizeof(Word), true)) throw Fault{address};
    reinterpret_cast<std::atomic<Word>*>(address)->store(value, std::memory_order_release);
  };
  call.Submit(call.StreamOf(stream), std::move(write));
}

template <class Word>
CUresult Wait(CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  return WithContext([&](Call& call) { SubmitWait<Word>(call, stream, address, value, flags); });
}

template <class Word>
CUresult Write(CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  return WithContext([&](Call& call) { SubmitWrite<Word>(call, stream, address, value, flags); });
}

void SubmitOne(Call& call, CUstream stream, const CUstreamBatchMemOpParams& one) {
  switch (one.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      return SubmitWait<std::uint32_t>(call, stream, one.waitValue.address, one.waitValue.value,
                                       one.waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      return SubmitWait<std::uint64_t>(call, stream, one.waitValue.address, one.waitValue.value64,
                                       one.waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      return SubmitWrite<std::uint32_t>(call, stream, one.writeValue.address, one.writeValue.value,
                                        one.writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      return SubmitWrite<std::uint64_t>(call, stream, one.writeValue.address, one.writeValue.value64,
                                        one.writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      return;  // a stream's operations take effect in order anyway
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
}

CUresult Batch(CUstream stream, unsigned count, const CUstreamBatchMemOpParams* operations, unsigned flags) {
  return WithContext([&](Call& call) {
    Require(count <= 256 && operations != nullptr && flags == 0);
    for (unsigned i = 0; i < count; ++i) SubmitOne(call, stream, operations[i]);
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuStreamWaitValue32)(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Wait<std::uint32_t>(stream, address, value, flags);
}
SIM_API(cuStreamWaitValue32_v2)(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Wait<std::uint32_t>(stream, address, value, flags);
}
SIM_API(cuStreamWaitValue64)(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Wait<std::uint64_t>(stream, address, value, flags);
}
SIM_API(cuStreamWaitValue64_v2)(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Wait<std::uint64_t>(stream, address, value, flags);
}
SIM_API(cuStreamWriteValue32)(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Write<std::uint32_t>(stream, address, value, flags);
}
SIM_API(cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Write<std::uint32_t>(stream, address, value, flags);
}
SIM_API(cuStreamWriteValue64)(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Write<std::uint64_t>(stream, address, value, flags);
}
SIM_API(cuStreamWriteValue64_v2)(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Write<std::uint64_t>(stream, address, value, flags);
}
SIM_API(cuStreamBatchMemOp)
(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags) {
  return Batch(stream, count, operations, flags);
}
SIM_API(cuStreamBatchMemOp_v2)
(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags) {
  return Batch(stream, count, operations, flags);
}
