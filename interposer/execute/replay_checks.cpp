#include "interposer/execute/replay_checks.h"

#include <algorithm>

#include "interposer/driver/function_name.h"

namespace spillway::interposer {

using driver::Driver;

// What an input held before a presumed read is what it must hold behind the replay. Other memory is
// fingerprinted before the replay, too. While a host copy insures the output, an input may have
// changed meanwhile: only the replay itself must not change it.
bool ReplayChecks::Begin(const RecomputeRecord& record, StreamState* stream) {
  ContentChecks& checks = state_.residency.checks();
  ForgetDone();
  now_.clear();
  std::vector<Fingerprints::Piece> before;
  bool has_all = true;
  for (size_t i = 0; i < record.inputs.size() && has_all; ++i) {
    const Tracked& input = *record.inputs[i];
    const Fingerprints::Slot slot = checks.TakeSlot();
    const auto known = record.is_insured ? ContentChecks::kNoSlot : input.presumed.print;
    const bool is_known = known != ContentChecks::kNoSlot;
    now_.push_back({input.base, input.requested_bytes, slot, is_known ? known : slot});
    if (!is_known) before.push_back({input.base, input.requested_bytes, slot});
    has_all = slot != ContentChecks::kNoSlot;
  }
  in_use_.store(&checks, std::memory_order_release);
  Check& check = checks_.emplace_back();
  check.function = record.launch.function();
  check.output = record.print;
  check.token = record.token;
  for (const Fingerprints::Piece& piece : now_) check.slots.push_back(piece.to);
  if (has_all && record.is_insured) {
    check.made = checks.TakeSlot();
    has_all = check.made != ContentChecks::kNoSlot;
  }
  return has_all && (before.empty() || checks.Take(stream->handle, before));
}

void ReplayChecks::End(const RecomputeRecord& record, StreamState* stream) {
  state_.timeline.OrderAfter(stream, record.printed);
  for (const Tracked* input : record.inputs) {
    for (const Use use : input->presumed.used.items()) state_.timeline.OrderAfter(stream, use);
  }
  Fingerprints::Piece output{record.output->base, record.output->requested_bytes, record.print,
                             record.print};
  if (record.is_insured) output = {output.begin, output.bytes, checks_.back().made};
  now_.push_back(output);
  if (!state_.residency.checks().Take(stream->handle, now_))
    could_not_check_.store(true, std::memory_order_relaxed);
  ++state_.counters.checked_recomputes;
  state_.counters.insured_recomputes += record.is_insured;
}

// An insured check owns the fingerprint that it compares with: the record may be dropped again
// before.
void ReplayChecks::Ended(RecomputeRecord* record, Use use) {
  checks_.back().use = record->printed = use;
  for (size_t i = 0; i < record->inputs.size(); ++i) {
    Tracked* const input = record->inputs[i];
    if (input->presumed.print == ContentChecks::kNoSlot) continue;
    input->presumed.used.Add(use);
    presumed_.Taken(input, checks_.back().slots[i], use);
  }
  if (!record->is_insured) return;
  record->print = ContentChecks::kNoSlot;
  record->printed = {};
}

void ReplayChecks::NotMade(StreamState* stream) {
  Check& check = checks_.back();
  check.use = state_.timeline.Issue(stream);
  check.output = ContentChecks::kNoSlot;
  state_.timeline.EventFor(check.use);
}

UseList ReplayChecks::UnderWay() const {
  UseList uses;
  for (const Check& check : checks_) {
    if (!Timeline::KnownDone(check.use)) uses.Add(check.use);
  }
  return uses;
}

void ReplayChecks::NoteWrong(CUfunction function) {
  if (!wrong_) wrong_ = function;
  in_use_.store(&state_.residency.checks(), std::memory_order_release);
  could_not_check_.store(true, std::memory_order_relaxed);
}

bool ReplayChecks::IsWrong() const {
  const ContentChecks* const checks = in_use_.load(std::memory_order_acquire);
  return checks && (checks->Mismatches() > 0 || could_not_check_.load(std::memory_order_relaxed));
}

std::string ReplayChecks::NameOfWrong() {
  const StateLock lock(state_.locks);
  for (const Check& check : checks_) {
    if (!wrong_ && AnyDiffers(check)) wrong_ = check.function;
  }
  const char* const name = wrong_ ? driver::NameOf(wrong_) : nullptr;
  return name ? name : "a kernel";
}

void ReplayChecks::ForgetDone() {
  while (!checks_.empty() && state_.timeline.Done(checks_.front().use)) {
    Forget(checks_.front());
    checks_.pop_front();
  }
}

void ReplayChecks::Forget(const Check& done) {
  ContentChecks& checks = state_.residency.checks();
  if (!wrong_ && AnyDiffers(done)) wrong_ = done.function;
  for (const Fingerprints::Slot slot : done.slots) checks.GiveLater(slot, done.use);
  if (done.made == ContentChecks::kNoSlot) return;
  if (done.output != ContentChecks::kNoSlot) JudgeInsured(done);
  checks.GiveLater(done.made, done.use);
  checks.GiveLater(done.output, done.use);
}

void ReplayChecks::JudgeInsured(const Check& done) {
  const ContentChecks& checks = state_.residency.checks();
  if (checks.Read(done.made) == checks.Read(done.output))
    return state_.recompute_records.Insured(done.token);
  ++state_.counters.mismatched_recomputes;
  state_.effects.Refute(done.token);
  state_.recompute_records.Judge(done.token, RecomputeRecords::Verdict::kRefuted);
}

bool ReplayChecks::AnyDiffers(const Check& check) {
  const ContentChecks& checks = state_.residency.checks();
  const auto differs = [&](Fingerprints::Slot slot) {
    return slot != ContentChecks::kNoSlot && checks.Differs(slot);
  };
  const bool is_insured = check.made != ContentChecks::kNoSlot;
  return (!is_insured && differs(check.output)) ||
         std::any_of(check.slots.begin(), check.slots.end(), differs);
}

}  // namespace spillway::interposer
