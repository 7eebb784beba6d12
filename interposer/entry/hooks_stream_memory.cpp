// Stream memory operations: the stream itself writes a word, or waits until a word has a value. The word may lie in
// managed memory, which must be there when the stream comes to it.
#include "interposer/entry/touch_hooks.h"

namespace spillway::entry {
namespace {

// Barriers and flushes name no address.
void AddWords(const CUstreamBatchMemOpParams* operations, unsigned int count, Collector& add) {
  for (unsigned int i = 0; operations && i < count; ++i) {
    switch (operations[i].operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        add(operations[i].waitValue.address);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        add(operations[i].writeValue.address);
        break;
      default:
        break;
    }
  }
}

}  // namespace
}  // namespace spillway::entry

using spillway::entry::AddWords;

#define SPILLWAY_STREAM_WORDS(bits, version)                                                 \
  SPILLWAY_ASYNCHRONOUS(cuStreamWriteValue##bits##version,                                   \
                        (CUstream s, CUdeviceptr d, cuuint##bits##_t v, unsigned int flags), \
                        (s, d, v, flags), Effect::kMayWrite, add(d))                         \
  SPILLWAY_ASYNCHRONOUS(cuStreamWaitValue##bits##version,                                    \
                        (CUstream s, CUdeviceptr f, cuuint##bits##_t v, unsigned int flags), \
                        (s, f, v, flags), Effect::kReads, add(f))
SPILLWAY_STREAM_WORDS(32, )
SPILLWAY_STREAM_WORDS(32, _v2)
SPILLWAY_STREAM_WORDS(64, )
SPILLWAY_STREAM_WORDS(64, _v2)

#define SPILLWAY_STREAM_BATCH(name)                                                                       \
  SPILLWAY_ASYNCHRONOUS(name,                                                                             \
                        (CUstream s, unsigned int n, CUstreamBatchMemOpParams* list, unsigned int flags), \
                        (s, n, list, flags), Effect::kMayWrite, AddWords(list, n, add))
SPILLWAY_STREAM_BATCH(cuStreamBatchMemOp)
SPILLWAY_STREAM_BATCH(cuStreamBatchMemOp_v2)
