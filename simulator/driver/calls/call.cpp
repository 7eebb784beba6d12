#include "simulator/driver/calls/call.h"

#include "simulator/driver/calls/capture.h"
#include "simulator/driver/engine/timeline_file.h"
#include "simulator/driver/machine/statistics.h"

namespace spillway::simulator {
Stream& Call::StreamOf(CUstream handle) {
  if (handle == nullptr)
    return PerThreadDefault::active() ? context->OwnStream(sim.next_id) : *context->legacy;
  if (handle == CU_STREAM_LEGACY) return *context->legacy;
  if (handle == CU_STREAM_PER_THREAD) return context->OwnStream(sim.next_id);
  const auto found = sim.streams.find(reinterpret_cast<Stream*>(handle));
  Require(found != sim.streams.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

Event& Call::EventOf(CUevent handle) {
  const auto found = sim.events.find(reinterpret_cast<Event*>(handle));
  Require(found != sim.events.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

OperationRef Call::Submit(Stream& stream, Operation operation,
                          const std::vector<OperationRef>& also_after) {
  RequireUncaptured(*this, stream);
  auto submitted = std::make_shared<Operation>(std::move(operation));
  SubmitTo(sim.engine, lock, stream, submitted, also_after);
  return submitted;
}

void Call::Spend(std::uint64_t time_ns) {
  TheStatistics().driver_busy_ns += time_ns;
  const Nanos begin_ns = sim.engine.now();
  sim.engine.SpendHostTime(lock, static_cast<Nanos>(time_ns));
  NoteHostTime(begin_ns, sim.engine.now());
}

void Call::Wait(const Context& whose, const std::vector<OperationRef>& operations) {
  const std::shared_ptr<ErrorState> errors =
      whose.errors;  // the context may be destroyed during the wait
  for (const OperationRef& operation : operations) sim.engine.Wait(lock, operation);
  Require(errors->sticky == CUDA_SUCCESS, errors->sticky);
}

void Call::TrimPools() {
  for (const auto& [key, pool] : sim.pools) pool->TrimAtSynchronisation();
}

}  // namespace spillway::simulator
