#include "interposer/execute/replay_checks.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

using driver::Driver;

bool ReplayChecks::Begin(const RecomputeRecord& record, StreamState* stream) {
  ContentChecks& checks = state_.residency.checks();
  ForgetDone();
  now_.clear();
  const auto add = [&](CUdeviceptr begin, std::size_t bytes) SPILLWAY_REQUIRES(kStateLock) {
    const Fingerprints::Slot slot = checks.TakeSlot();
    now_.push_back({begin, bytes, slot, slot});
    return slot != ContentChecks::kNoSlot;
  };
  bool has_all = true;
  for (const Tracked* input : record.inputs)
    has_all = has_all && add(input->base, input->requested_bytes);
  // Work on other streams may write device variables meanwhile.
  if (!state_.timeline.HasSeveralStreams()) {
    for (const StoredAddresses::Global& global : stored_.globals())
      has_all = has_all && add(global.base, global.bytes);
  }
  std::vector<Fingerprints::Piece> before = now_;
  for (Fingerprints::Piece& piece : before) piece.expected = ContentChecks::kNoSlot;
  in_use_.store(&checks, std::memory_order_release);
  checks_.push_back({record.launch.function(), {}, record.print, {}});
  for (const Fingerprints::Piece& piece : now_) checks_.back().slots.push_back(piece.to);
  return has_all && checks.Take(stream->handle, before);
}

void ReplayChecks::End(const RecomputeRecord& record, StreamState* stream) {
  state_.timeline.OrderAfter(stream, record.printed);
  now_.push_back({record.output->base, record.output->requested_bytes, record.print, record.print});
  if (!state_.residency.checks().Take(stream->handle, now_))
    could_not_check_.store(true, std::memory_order_relaxed);
  ++state_.counters.checked_recomputes;
}

void ReplayChecks::Ended(Use use) { checks_.back().use = use; }

bool ReplayChecks::IsWrong() const {
  const ContentChecks* const checks = in_use_.load(std::memory_order_acquire);
  return checks && (checks->Mismatches() > 0 || could_not_check_.load(std::memory_order_relaxed));
}

std::string ReplayChecks::NameOfWrong() {
  const StateLock lock(state_.locks);
  for (const Check& check : checks_) {
    if (!wrong_ && AnyDiffers(check)) wrong_ = check.function;
  }
  const char* name = nullptr;
  const bool is_known = wrong_ && Driver().cuFuncGetName &&
                        Driver().cuFuncGetName(&name, wrong_) == CUDA_SUCCESS && name;
  return is_known ? name : "a kernel";
}

void ReplayChecks::ForgetDone() {
  while (!checks_.empty() && state_.timeline.Done(checks_.front().use)) {
    const Check& done = checks_.front();
    if (!wrong_ && AnyDiffers(done)) wrong_ = done.function;
    for (const Fingerprints::Slot slot : done.slots) {
      if (slot != ContentChecks::kNoSlot) state_.residency.checks().GiveLater(slot, done.use);
    }
    checks_.pop_front();
  }
}

bool ReplayChecks::AnyDiffers(const Check& check) {
  const ContentChecks& checks = state_.residency.checks();
  const auto differs = [&](Fingerprints::Slot slot) {
    return slot != ContentChecks::kNoSlot && checks.Differs(slot);
  };
  return differs(check.output) || std::any_of(check.slots.begin(), check.slots.end(), differs);
}

}  // namespace spillway::interposer
