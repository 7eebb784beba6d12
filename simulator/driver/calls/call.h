// The frame of every exported function: take the engine's mutex, spend the call's time, find the
// current context, turn a Failure into its CUresult.
//
// A body runs with the engine's mutex held; Call::Wait releases it meanwhile.
#pragma once

#include <new>
#include <type_traits>

#include "simulator/driver/calls/simulator.h"
#include "simulator/driver/failure.h"
#include "simulator/driver/machine/process.h"

namespace spillway::simulator {

class Call {
 public:
  Call(Simulator& simulator, Engine::Lock& held) : sim(simulator), lock(held) {}

  Simulator& sim;
  Engine::Lock& lock;
  Context* context = nullptr;  // null for calls that need none

  Stream& StreamOf(CUstream handle);
  Event& EventOf(CUevent handle);

  // Throws if the stream captures, or if a capture has made it unusable.
  OperationRef Submit(Stream& stream, Operation operation,
                      const std::vector<OperationRef>& also_after = {});

  void Spend(std::uint64_t time_ns);

  // Then throws the context's sticky error, if any.
  void Wait(const Context& whose, const std::vector<OperationRef>& operations);
  void WaitForStream(const Stream& stream) { Wait(*stream.context, EndOf(stream)); }
  void WaitForContext(const Context& whose) { Wait(whose, whose.Tails()); }
  void TrimPools();
};

// While one lives, this thread's calls take no simulated time: the driver's own questions.
class UnchargedCalls {
 public:
  UnchargedCalls() { ++depth_; }
  ~UnchargedCalls() { --depth_; }
  UnchargedCalls(const UnchargedCalls&) = delete;
  UnchargedCalls& operator=(const UnchargedCalls&) = delete;

  static bool active() { return depth_ != 0; }

 private:
  static inline thread_local int depth_ = 0;
};

enum class NeedsContext { kNo, kWhereThereIsOne, kYes };

template <class Body>
CUresult Guarded(NeedsContext needs, Body body) noexcept {
  Simulator* const sim = TheSimulator();
  if (sim == nullptr || IsForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  if (HasShutDown()) return CUDA_ERROR_DEINITIALIZED;
  try {
    Engine::Lock lock = sim->engine.Acquire();
    if (!UnchargedCalls::active()) sim->engine.ChargeApiCall(lock);
    Call call(*sim, lock);
    const bool is_current = !CurrentContexts().empty() && CurrentContexts().back() != nullptr;
    Require(is_current || needs != NeedsContext::kYes, CUDA_ERROR_INVALID_CONTEXT);
    if (is_current && needs != NeedsContext::kNo) {
      call.context = CurrentContexts().back();
      Require(sim->IsContext(call.context), CUDA_ERROR_CONTEXT_IS_DESTROYED);
      Require(call.context->errors->sticky == CUDA_SUCCESS, call.context->errors->sticky);
    }
    if constexpr (std::is_void_v<decltype(body(call))>) {
      body(call);
      return CUDA_SUCCESS;
    } else {
      return body(call);
    }
  } catch (const Failure& failure) {
    return failure.code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

template <class Body>
CUresult WithDriver(Body body) noexcept {
  return Guarded(NeedsContext::kNo, body);
}

template <class Body>
CUresult WithContext(Body body) noexcept {
  return Guarded(NeedsContext::kYes, body);
}

template <class Body>
CUresult WithContextIfAny(Body body) noexcept {
  return Guarded(NeedsContext::kWhereThereIsOne, body);
}

}  // namespace spillway::simulator
