// Managed memory with the word of a stream memory operation must be resident when the stream gets
// there.
#include "interposer/entry/program_waits.h"
#include "interposer/entry/touch_hooks.h"
#include "interposer/entry/transfers.h"

namespace spillway::entry {
namespace {

void AddWords(const CUstreamBatchMemOpParams* operations, unsigned int count, Collector& add) {
  for (unsigned int i = 0; operations && i < count; ++i) {
    switch (operations[i].operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        add(operations[i].waitValue.address);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        AddFromHost(add, operations[i].writeValue.address, &operations[i].writeValue.value,
                    sizeof(cuuint32_t));
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        AddFromHost(add, operations[i].writeValue.address, &operations[i].writeValue.value64,
                    sizeof(cuuint64_t));
        break;
      default:
        break;
    }
  }
}

}  // namespace
}  // namespace spillway::entry

using spillway::entry::AddFromHost;
using spillway::entry::AddWords;
using spillway::entry::MarkBeforeProgramWait;

#define SPILLWAY_WRITE(name, bits)                                                                 \
  SPILLWAY_ASYNCHRONOUS(name, (CUstream s, CUdeviceptr d, cuuint##bits##_t v, unsigned int flags), \
                        (s, d, v, flags), Effect::kMayWrite, AddFromHost(add, d, &v, sizeof v))
SPILLWAY_WRITE(cuStreamWriteValue32, 32)
SPILLWAY_WRITE(cuStreamWriteValue32_v2, 32)
SPILLWAY_WRITE(cuStreamWriteValue64, 64)
SPILLWAY_WRITE(cuStreamWriteValue64_v2, 64)

#define SPILLWAY_WAIT(name, per_thread, bits)                                         \
  SPILLWAY_TOUCH(name, per_thread, s,                                                 \
                 (CUstream s, CUdeviceptr f, cuuint##bits##_t v, unsigned int flags), \
                 (s, f, v, flags), Effect::kReads, MarkBeforeProgramWait({s, per_thread}), add(f))
#define SPILLWAY_WAIT_TWINS(name, bits) \
  SPILLWAY_WAIT(name, false, bits)      \
  SPILLWAY_WAIT(name##_ptsz, true, bits)
SPILLWAY_WAIT_TWINS(cuStreamWaitValue32, 32)
SPILLWAY_WAIT_TWINS(cuStreamWaitValue32_v2, 32)
SPILLWAY_WAIT_TWINS(cuStreamWaitValue64, 64)
SPILLWAY_WAIT_TWINS(cuStreamWaitValue64_v2, 64)

#define SPILLWAY_BATCH(name, per_thread)                                                           \
  SPILLWAY_TOUCH(name, per_thread, s,                                                              \
                 (CUstream s, unsigned int n, CUstreamBatchMemOpParams* list, unsigned int flags), \
                 (s, n, list, flags), Effect::kMayWrite, MarkBeforeProgramWait({s, per_thread}),   \
                 AddWords(list, n, add))
SPILLWAY_BATCH(cuStreamBatchMemOp, false)
SPILLWAY_BATCH(cuStreamBatchMemOp_ptsz, true)
SPILLWAY_BATCH(cuStreamBatchMemOp_v2, false)
SPILLWAY_BATCH(cuStreamBatchMemOp_v2_ptsz, true)
