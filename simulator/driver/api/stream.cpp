#include <algorithm>

#include "simulator/driver/calls/capture.h"
#include "simulator/driver/calls/node_work.h"

namespace spillway::simulator {
namespace {

constexpr int kGreatestPriority = -5;

CUstream Handle(Stream* stream) { return reinterpret_cast<CUstream>(stream); }

CUresult Create(CUstream* handle, unsigned flags, int priority) {
  return WithContext([&](Call& call) {
    Require(handle != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
    const bool blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
    auto stream =
        std::make_shared<Stream>(Stream{call.sim.next_id++, call.context, false, blocking, flags,
                                        std::clamp(priority, kGreatestPriority, 0), nullptr});
    call.context->streams.emplace(stream->id, stream);
    call.sim.streams.emplace(stream.get(), stream);
    *handle = Handle(stream.get());
  });
}

// Work of a destroyed stream goes on; a context synchronisation still waits for it.
CUresult Destroy(CUstream handle) {
  return WithContext([&](Call& call) {
    const auto found = call.sim.streams.find(reinterpret_cast<Stream*>(handle));
    Require(found != call.sim.streams.end(), CUDA_ERROR_INVALID_HANDLE);
    const StreamRef stream = found->second;
    ForgetInCaptures(*stream);
    Context& context = *stream->context;
    std::erase_if(context.orphans, [](const OperationRef& tail) { return tail->done; });
    if (stream->tail != nullptr && !stream->tail->done) context.orphans.push_back(stream->tail);
    context.streams.erase(stream->id);
    call.sim.streams.erase(found);
  });
}

void RequireDone(Call& call, const std::vector<OperationRef>& operations) {
  if (std::all_of(operations.begin(), operations.end(), IsDone)) return;
  call.sim.engine.NoteNotReady(call.lock);
  throw Failure{CUDA_ERROR_NOT_READY};
}

// The engine's own thread records it: other processes see it though this process calls no more.
void RecordShared(Call& call, const Event& event, Stream& stream) {
  Operation record;
  record.name = "event record";
  record.resource = Resource::kHostThread;
  const std::uint64_t number = event.shared->Record();
  record.effect = [shared = event.shared, number] { shared->Complete(number); };
  call.Submit(stream, std::move(record));
}

Operation WaitForShared(const Event& event) {
  Operation wait;
  wait.name = "event wait";
  wait.resource = Resource::kExternalWait;
  const std::uint64_t number = event.shared->recorded();
  wait.condition = [shared = event.shared, number] { return shared->HasCompleted(number); };
  return wait;
}

CUresult Record(CUevent event_handle, CUstream stream_handle, unsigned flags = 0) {
  return WithContext([&](Call& call) {
    Event& event = call.EventOf(event_handle);
    Stream& stream = call.StreamOf(stream_handle);
    Require(event.context->device == stream.context->device, CUDA_ERROR_INVALID_HANDLE);
    if (IsCapturing(stream)) {
      if ((flags & CU_EVENT_RECORD_EXTERNAL) == 0) return CaptureRecord(event, stream);
      AddCaptured(call, stream,
                  std::make_shared<EventWork>(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_handle));
      return;
    }
    if (event.shared != nullptr) return RecordShared(call, event, stream);
    Operation record;
    record.name = "event record";
    event.Record(call.Submit(stream, std::move(record)));
  });
}

CUresult DestroyEvent(CUevent handle) {
  return WithContext([&](Call& call) {
    call.EventOf(handle);
    call.sim.events.erase(reinterpret_cast<Event*>(handle));
  });
}

CUresult ElapsedTime(float* milliseconds, CUevent from_handle, CUevent to_handle) {
  return WithContext([&](Call& call) {
    Require(milliseconds != nullptr);
    const Event& from = call.EventOf(from_handle);
    const Event& to = call.EventOf(to_handle);
    Require(((from.flags | to.flags) & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
    RequireUncaptured(from);
    RequireUncaptured(to);
    Require(from.recorded != nullptr && to.recorded != nullptr, CUDA_ERROR_INVALID_HANDLE);
    Require(from.recorded->done && to.recorded->done, CUDA_ERROR_NOT_READY);
    *milliseconds =
        static_cast<float>(static_cast<double>(to.recorded->end_ns - from.recorded->end_ns) * 1e-6);
  });
}

void WaitForEvent(Call& call, Stream& stream, CUevent handle, unsigned flags) {
  Event& event = call.EventOf(handle);
  if (IsCapturing(stream) && (flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
    AddCaptured(call, stream, std::make_shared<EventWork>(CU_GRAPH_NODE_TYPE_WAIT_EVENT, handle));
    return;
  }
  if (stream.capture != nullptr || event.capture != nullptr)
    return CaptureWait(call, stream, event);
  if (event.shared != nullptr) {
    call.Submit(stream, WaitForShared(event));
    return;
  }
  Operation wait;
  wait.name = "event wait";
  call.Submit(stream, std::move(wait), {event.recorded});
}

void SubmitHostFunction(Call& call, CUstream stream, std::function<void()> function) {
  Operation operation;
  operation.name = "host function";
  operation.resource = Resource::kHostThread;
  operation.effect = std::move(function);
  call.Submit(call.StreamOf(stream), std::move(operation));
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuStreamCreate)(CUstream* stream, unsigned int flags) { return Create(stream, flags, 0); }
SIM_API(cuStreamCreateWithPriority)(CUstream* stream, unsigned int flags, int priority) {
  return Create(stream, flags, priority);
}
SIM_API(cuStreamDestroy)(CUstream stream) { return Destroy(stream); }
SIM_API(cuStreamDestroy_v2)(CUstream stream) { return Destroy(stream); }

SIM_API(cuStreamSynchronize)(CUstream stream) {
  return WithContext([&](Call& call) {
    RequireUncaptured(call, call.StreamOf(stream));
    RefuseWhileCapturing(call);
    call.WaitForStream(call.StreamOf(stream));
    call.TrimPools();
  });
}

SIM_API(cuStreamQuery)(CUstream stream) {
  return WithContext([&](Call& call) {
    RequireUncaptured(call, call.StreamOf(stream));
    RefuseWhileCapturing(call);
    RequireDone(call, EndOf(call.StreamOf(stream)));
  });
}

SIM_API(cuStreamWaitEvent)(CUstream stream, CUevent event, unsigned int flags) {
  return WithContext([&](Call& call) {
    Require((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) == 0);
    WaitForEvent(call, call.StreamOf(stream), event, flags);
  });
}

SIM_API(cuStreamGetPriority)(CUstream stream, int* priority) {
  return WithContext([&](Call& call) {
    Require(priority != nullptr);
    *priority = call.StreamOf(stream).priority;
  });
}

SIM_API(cuStreamGetFlags)(CUstream stream, unsigned int* flags) {
  return WithContext([&](Call& call) {
    Require(flags != nullptr);
    *flags = call.StreamOf(stream).flags;
  });
}

SIM_API(cuStreamGetId)(CUstream stream, unsigned long long* id) {
  return WithContext([&](Call& call) {
    Require(id != nullptr);
    *id = call.StreamOf(stream).id;
  });
}

SIM_API(cuStreamGetCtx)(CUstream stream, CUcontext* context) {
  return WithContext([&](Call& call) {
    Require(context != nullptr);
    *context = reinterpret_cast<CUcontext>(call.StreamOf(stream).context);
  });
}

SIM_API(cuStreamGetCtx_v2)(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  return WithContext([&](Call& call) {
    Require(context != nullptr);
    *context = reinterpret_cast<CUcontext>(call.StreamOf(stream).context);
    if (green != nullptr) *green = nullptr;
  });
}

SIM_API(cuStreamGetDevice)(CUstream stream, CUdevice* device) {
  return WithContext([&](Call& call) {
    Require(device != nullptr);
    *device = call.StreamOf(stream).context->ordinal();
  });
}

SIM_API(cuStreamCopyAttributes)(CUstream target, CUstream source) {
  return WithContext([&](Call& call) {
    call.StreamOf(target);
    call.StreamOf(source);
  });
}

SIM_API(cuStreamAttachMemAsync)
(CUstream stream, CUdeviceptr address, size_t length, unsigned int flags) {
  return WithContext([&](Call& call) {
    (void)length;
    (void)flags;
    call.StreamOf(stream);
    const Allocation* managed = call.sim.allocations.Find(address);
    Require(managed != nullptr && managed->kind == AllocationKind::kManaged);
  });
}

SIM_API(cuEventCreate)(CUevent* event, unsigned int flags) {
  return WithContext([&](Call& call) {
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    Require(event != nullptr && (flags & ~known) == 0);
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    Require(!shared || (flags & CU_EVENT_DISABLE_TIMING) != 0);
    auto created = std::make_unique<Event>(Event{flags, call.context, nullptr});
    if (shared) {
      created->shared = SharedEvent::Make();
      Require(created->shared != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    }
    *event = reinterpret_cast<CUevent>(created.get());
    call.sim.events.emplace(created.get(), std::move(created));
  });
}

SIM_API(cuEventDestroy)(CUevent event) { return DestroyEvent(event); }
SIM_API(cuEventDestroy_v2)(CUevent event) { return DestroyEvent(event); }
SIM_API(cuEventRecord)(CUevent event, CUstream stream) { return Record(event, stream); }
SIM_API(cuEventRecordWithFlags)(CUevent event, CUstream stream, unsigned int flags) {
  if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return Record(event, stream, flags);
}

SIM_API(cuEventQuery)(CUevent event) {
  return WithContext([&](Call& call) {
    RequireUncaptured(call.EventOf(event));
    RefuseWhileCapturing(call);
    const Event& asked = call.EventOf(event);
    if (asked.shared != nullptr) {
      Require(asked.shared->HasCompleted(asked.shared->recorded()), CUDA_ERROR_NOT_READY);
      return;
    }
    RequireDone(call, {asked.recorded});
  });
}

SIM_API(cuEventSynchronize)(CUevent event) {
  return WithContext([&](Call& call) {
    RequireUncaptured(call.EventOf(event));
    RefuseWhileCapturing(call);
    const Event& awaited = call.EventOf(event);
    OperationRef recorded = awaited.recorded;
    if (awaited.shared != nullptr) {
      recorded = std::make_shared<Operation>(WaitForShared(awaited));
      recorded->errors = call.context->errors;
      call.sim.engine.Submit(call.lock, recorded, {});
    }
    call.Wait(*call.context, {recorded});
    call.TrimPools();
  });
}

SIM_API(cuEventElapsedTime)(float* milliseconds, CUevent from, CUevent to) {
  return ElapsedTime(milliseconds, from, to);
}
SIM_API(cuEventElapsedTime_v2)(float* milliseconds, CUevent from, CUevent to) {
  return ElapsedTime(milliseconds, from, to);
}

SIM_API(cuLaunchHostFunc)(CUstream stream, CUhostFn function, void* argument) {
  return WithContext([&](Call& call) {
    Require(function != nullptr);
    if (Stream& target = call.StreamOf(stream); IsCapturing(target)) {
      AddCaptured(call, target, std::make_shared<HostWork>(function, argument));
      return;
    }
    const auto errors = call.context->errors;
    SubmitHostFunction(call, stream, [=] {
      if (errors->sticky == CUDA_SUCCESS) function(argument);
    });
  });
}

SIM_API(cuStreamAddCallback)
(CUstream stream, CUstreamCallback callback, void* argument, unsigned int flags) {
  return WithContext([&](Call& call) {
    Require(callback != nullptr && flags == 0);
    const auto errors = call.context->errors;
    SubmitHostFunction(call, stream, [=] { callback(stream, errors->sticky, argument); });
  });
}
