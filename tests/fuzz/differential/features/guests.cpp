// A fresh host thread launches on its own per-thread default stream and ends, half of the time with
// its work still going on. The thread that started it then waits for the context.
#include <exception>
#include <thread>

#include "tests/fuzz/differential/features/all.h"
#include "tests/fuzz/differential/running.h"
#include "tests/fuzz/differential/transfers.h"
#include "tests/support/driver_check.h"

namespace spillway::fuzz {
namespace {

bool WaitsItself(const Operation& operation) { return (operation.salt & 256) != 0; }

void Visit(const Operation& operation, const Running& running) {
  SPILLWAY_DRIVER_CALL(cuCtxSetCurrent(running.context));
  Launch(operation, running.table, running.device, running.manner.timing_salt);
  if (WaitsItself(operation)) SPILLWAY_DRIVER_CALL(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

class GuestsFeature : public Feature {
 public:
  const char* Name() const override { return "guests"; }
  unsigned PerMille() const override { return 80; }

  void Propose(Proposer& proposer) const override {
    Chooser& choose = proposer.Choose();
    const auto reachable = [](const Buffer& b) { return b.form != AllocForm::kPageable; };
    const int buffer = choose.PickBuffer(reachable);
    const int source = choose.PickBuffer(reachable);
    if (buffer == kNone) return;
    const std::optional<View> out = choose.PickKernelOutput(buffer);
    if (!out) return;
    Operation visit{.kind = Kind::kFeatureCall, .stream = kPerThreadStream, .out = *out};
    visit.form = static_cast<std::uint8_t>(proposer.Dice().Below(4));
    visit.slow = proposer.Dice().Percent(40);
    if (const std::optional<View> in = choose.PickKernelInput(source)) visit.in.push_back(*in);
    proposer.Add(visit);
  }

  void Run(const Operation& operation, const Running& running) const override {
    std::exception_ptr failure;
    std::thread guest([&] {
      try {
        Visit(operation, running);
      } catch (...) {
        failure = std::current_exception();
      }
    });
    guest.join();
    if (failure) std::rethrow_exception(failure);
    if (!WaitsItself(operation)) SPILLWAY_DRIVER_CALL(cuCtxSynchronize());
  }
};

}  // namespace

const Feature& Guests() {
  static const GuestsFeature guests;
  return guests;
}

}  // namespace spillway::fuzz
