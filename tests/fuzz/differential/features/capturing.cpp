#include "tests/fuzz/differential/features/capturing.h"

#include "tests/fuzz/differential/random.h"
#include "tests/fuzz/differential/transfers.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {

int PickCaptureStream(Proposer& proposer) {
  std::vector<int> fit;
  for (const int stream : proposer.Now().StreamsOf(proposer.Thread())) {
    if (stream >= kFirstCreatedStream && !proposer.Now().IsBlocking(stream)) fit.push_back(stream);
  }
  return fit.empty() ? kNone : fit[proposer.Dice().Below(fit.size())];
}

CUgraph Capture(const Operation& operation, const std::vector<Operation>& body,
                const Running& running) {
  const CUstream stream = running.table.StreamOf(operation);
  SPILLWAY_DRIVER_CALL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (Operation part : body) {
    part.stream = operation.stream;
    part.on_stream = true;
    if (part.kind == Kind::kKernel)
      Launch(part, running.table, running.device, running.manner.timing_salt);
    if (part.kind == Kind::kCopy) Copy(part, running.table);
    if (part.kind == Kind::kFill) Fill(part, running.table);
  }
  CUgraph graph = nullptr;
  SPILLWAY_DRIVER_CALL(cuStreamEndCapture(stream, &graph));
  return graph;
}

}  // namespace spillway::fuzz
