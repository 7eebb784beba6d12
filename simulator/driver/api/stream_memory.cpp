#include "simulator/driver/calls/stream_memory.h"
#include "simulator/driver/calls/capture.h"
#include "simulator/driver/calls/node_work.h"

namespace spillway::simulator {
namespace {

bool DoesSomething(const CUstreamBatchMemOpParams& one) {
  return one.operation != CU_STREAM_MEM_OP_BARRIER &&
         one.operation != CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
}

CUresult Batch(CUstream stream_handle, unsigned count, const CUstreamBatchMemOpParams* operations,
               unsigned flags) {
  return WithContext([&](Call& call) {
    Require(count <= 256 && operations != nullptr && flags == 0);
    Stream& stream = call.StreamOf(stream_handle);
    if (IsCapturing(stream)) {
      CUgraphNodeParams params = {};
      params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
      params.memOp = {reinterpret_cast<CUcontext>(call.context), count,
                      const_cast<CUstreamBatchMemOpParams*>(operations), 0};
      AddCaptured(call, stream, MakeWork(call, params));
      return;
    }
    for (unsigned i = 0; i < count; ++i) {
      Operation operation = MakeMemoryOperation(call.sim, operations[i]);
      if (DoesSomething(operations[i])) call.Submit(stream, std::move(operation));
    }
  });
}

CUresult Wait(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
              unsigned flags) {
  CUstreamBatchMemOpParams one = {};
  one.waitValue = {type, address, {}, flags, 0};
  one.waitValue.value64 = value;
  return Batch(stream, 1, &one, 0);
}

CUresult Write(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, cuuint64_t value,
               unsigned flags) {
  CUstreamBatchMemOpParams one = {};
  one.writeValue = {type, address, {}, flags, 0};
  one.writeValue.value64 = value;
  return Batch(stream, 1, &one, 0);
}

constexpr CUstreamBatchMemOpType kWait32 = CU_STREAM_MEM_OP_WAIT_VALUE_32;
constexpr CUstreamBatchMemOpType kWait64 = CU_STREAM_MEM_OP_WAIT_VALUE_64;
constexpr CUstreamBatchMemOpType kWrite32 = CU_STREAM_MEM_OP_WRITE_VALUE_32;
constexpr CUstreamBatchMemOpType kWrite64 = CU_STREAM_MEM_OP_WRITE_VALUE_64;

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuStreamWaitValue32)
(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Wait(stream, kWait32, address, value, flags);
}
SIM_API(cuStreamWaitValue32_v2)
(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Wait(stream, kWait32, address, value, flags);
}
SIM_API(cuStreamWaitValue64)
(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Wait(stream, kWait64, address, value, flags);
}
SIM_API(cuStreamWaitValue64_v2)
(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Wait(stream, kWait64, address, value, flags);
}
SIM_API(cuStreamWriteValue32)
(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Write(stream, kWrite32, address, value, flags);
}
SIM_API(cuStreamWriteValue32_v2)
(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags) {
  return Write(stream, kWrite32, address, value, flags);
}
SIM_API(cuStreamWriteValue64)
(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Write(stream, kWrite64, address, value, flags);
}
SIM_API(cuStreamWriteValue64_v2)
(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags) {
  return Write(stream, kWrite64, address, value, flags);
}
SIM_API(cuStreamBatchMemOp)
(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags) {
  return Batch(stream, count, operations, flags);
}
SIM_API(cuStreamBatchMemOp_v2)
(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* operations, unsigned int flags) {
  return Batch(stream, count, operations, flags);
}
