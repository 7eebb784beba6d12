#include "interposer/execute/repeat_proofs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/output_copy.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::RelaxedCapture;

namespace {

using Verdict = RecomputeRecords::Verdict;

constexpr size_t kPieceBytes = kGranuleBytes;  // of pinned memory, through which outputs are read

}  // namespace

struct RepeatProofs::Proof {
  std::uint64_t id = 0;
  Range* range = nullptr;
  std::uint32_t life = 0;
  base::InlineVector<Range*, 8> pinned;
  OutputCopy first;
  HostBuffer piece;
  Experiment* experiment = nullptr;  // null: of a library's call
  bool was_run = false;              // the output is what the second launch made, or the fill
  Use last;                          // our own work on the output
  bool is_same = false;
};

void RepeatProofs::CallEnded(const LibraryCall& call, Experiment* experiment) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  if (call.lacks_scratch_bytes) scratch_.TakeScratch(call.lacks_scratch_bytes);
  bool is_proved = false;
  if (IsOver(call, experiment, &is_proved)) return;
  if (!is_proved) Prove(call.record, experiment);
  Use made_by;
  {
    const StateLock lock(state_.locks);
    RecomputeRecord* const record = state_.recompute_records.Find(call.record);
    if (!record) return;
    if (!record->is_kept || state_.recompute_records.VerdictOn(record->token) != Verdict::kProved)
      return ForgetAfterCall(record);
    record->state = RecomputeRecord::State::kLive;
    made_by = record->made_by;
    if (std::exchange(record->drop_is_due, false)) records_.DropIfDue(record->output);
  }
  if (state_.drops_eagerly) DropAll(made_by);
}

// Whether nothing is left to do for the call's record, because it has none or it ends here.
bool RepeatProofs::IsOver(const LibraryCall& call, Experiment* experiment, bool* is_proved) {
  const StateLock lock(state_.locks);
  const RecomputeRecord* const record = state_.recompute_records.Find(call.record);
  if (!record) {
    if (experiment) learning_.EndRepetition(experiment, Experiment::Repetition::kNone);
    return true;
  }
  *is_proved = !experiment && state_.recompute_records.VerdictOn(record->token) == Verdict::kProved;
  const bool may_be_proved = *is_proved || experiment || !record->is_checked;
  const bool is_whole = call.works == 1 && record->state == RecomputeRecord::State::kMade;
  if (may_be_proved && is_whole) return false;
  ForgetAfterCall(record);
  if (experiment) learning_.EndRepetition(experiment, Experiment::Repetition::kNone);
  return true;
}

bool RepeatProofs::MayReplay(std::uint64_t token) {
  const StateLock lock(state_.locks);
  if (state_.effects.IsProved(token) && !RecomputeRecording::MayCheck()) return false;
  return state_.recompute_records.VerdictOn(token) == Verdict::kProved;
}

void RepeatProofs::InsureFirst(unsigned drops) {
  const StateLock lock(state_.locks);
  state_.recompute_records.InsureFirst(drops);
}

// A range that a plan wanted to drop is copied instead.
void RepeatProofs::ForgetAfterCall(const RecomputeRecord* record) {
  Range* const due = record->drop_is_due ? record->output : nullptr;
  frees_.Forget(record);
  if (due) records_.DropIfDue(due);
}

// All that can be dropped has left when the call's own work and the departures are over.
void RepeatProofs::DropAll(Use last) {
  UseList awaited;
  awaited.Add(last);
  {
    const StateLock lock(state_.locks);
    for (const std::uint64_t id : state_.recompute_records.All()) {
      Range* const output = state_.recompute_records.Find(id)->output;
      if (records_.Drop(output)) awaited.Merge(output->departure);
    }
  }
  for (const Use use : awaited.items()) waits_.AwaitQuietly(use);
  const StateLock lock(state_.locks);
  state_.residency.CollectLeft();
}

void RepeatProofs::Prove(std::uint64_t id, Experiment* experiment) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  Proof proof;
  proof.experiment = experiment;
  if (!BeginProof(id, &proof)) return EndUnmade(experiment);
  const bool is_complete = RunTwice(&proof);
  const bool must_put_back = ordering_rules::kRefutedIsPutBack && proof.was_run && !proof.is_same;
  if (must_put_back && !PutBack(proof)) NoteLost(proof);
  EndProof(&proof, is_complete);
}

// Without the host memory for it, the proof is left for another time.
bool RepeatProofs::BeginProof(std::uint64_t id, Proof* proof) {
  const StateLock lock(state_.locks);
  const RecomputeRecord* const record = state_.recompute_records.Find(id);
  if (!record || state_.timeline.AnyStreamIsHeld() || state_.all_memory.device_is_idle())
    return false;
  state_.timeline.EventFor(
      record->made_by);  // before another thread lets the stream wait for the program
  proof->id = id;
  proof->range = record->output;
  proof->life = record->output->life;
  proof->pinned.push_back(record->output);
  for (Tracked* input : record->inputs) {
    if (!IsBlock(input)) proof->pinned.push_back(AsRange(input));
  }
  const auto is_there = [](const Range* range) { return IsMapped(range) && !range->empty; };
  const bool all_there = record->output->pins == 0 && !record->output->host.data &&
                         std::all_of(proof->pinned.begin(), proof->pinned.end(), is_there);
  if (!all_there || !proof->first.Take(record->output->requested_bytes)) return false;
  if (!state_.residency.host().TakeIdle(kPieceBytes, &proof->piece)) return false;
  for (Range* range : proof->pinned) state_.residency.Pin(range);
  record->output->empty = true;  // a call that names it waits for the making lock
  return true;
}

bool RepeatProofs::RunTwice(Proof* proof) {
  Use use;
  {
    const StateLock lock(state_.locks);
    const RecomputeRecord* const record = state_.recompute_records.Find(proof->id);
    if (!record) return false;
    use = record->made_by;
  }
  if (!AwaitFirst(use, proof->id) || !MayRepeat(*proof) || !KeepFirst(proof)) return false;
  const bool is_repeated = Repeat(proof);
  return proof->last.stream && waits_.AwaitQuietly(proof->last) && is_repeated &&
         CompareSecond(proof);
}

// The program's own launch is complete. A launch that changed more than it fills is no experiment.
bool RepeatProofs::MayRepeat(const Proof& proof) {
  const StateLock lock(state_.locks);
  return !proof.experiment || !ordering_rules::kRepetitionsChangeNothing ||
         learning_.ChangedOnlyOutputs(*proof.experiment);
}

// False: the launch was not repeated, but its output may have been filled.
bool RepeatProofs::Repeat(Proof* proof) {
  const StateLock lock(state_.locks);
  RecomputeRecord* const record = state_.recompute_records.Find(proof->id);
  StreamState* const stream = replays_.StreamForReplay(nullptr);
  if (!record) return false;
  const bool is_filled =
      !proof->experiment || EffectLearning::FillForRepetition(*proof->range, stream);
  const bool is_made =
      is_filled && replays_.RepeatLaunch(record, stream, TraceCause::kNone) == CUDA_SUCCESS;
  proof->was_run = is_made || proof->experiment;
  if (is_made && proof->experiment) learning_.AfterRepetition(proof->experiment, stream);
  proof->last = state_.timeline.Issue(stream);
  state_.timeline.EventFor(proof->last);
  return is_made;
}

void RepeatProofs::EndUnmade(Experiment* experiment) {
  if (!experiment) return;
  const StateLock lock(state_.locks);
  learning_.EndRepetition(experiment, Experiment::Repetition::kNone);
}

// The launch may wait, without our knowing, for something that the program does after the call.
// Refuting its operation spares later calls that wait.
bool RepeatProofs::AwaitFirst(Use use, std::uint64_t id) {
  if (waits_.AwaitProgress([&]()
                               SPILLWAY_REQUIRES(kStateLock) { return state_.timeline.Done(use); }))
    return true;
  const StateLock lock(state_.locks);
  if (const RecomputeRecord* const record = state_.recompute_records.Find(id))
    state_.recompute_records.Judge(record->token, Verdict::kRefuted);
  return false;
}

Experiment::Repetition RepeatProofs::OutcomeOf(const Proof& proof, bool is_complete) {
  if (!is_complete) return Experiment::Repetition::kNone;
  return proof.is_same ? Experiment::Repetition::kSame : Experiment::Repetition::kDiffers;
}

void RepeatProofs::EndProof(Proof* proof, bool is_complete) {
  const StateLock lock(state_.locks);
  const RecomputeRecord* const record = state_.recompute_records.Find(proof->id);
  if (proof->experiment) {
    learning_.EndRepetition(proof->experiment, OutcomeOf(*proof, is_complete));
  } else if (is_complete && record) {
    state_.recompute_records.Judge(record->token,
                                   proof->is_same ? Verdict::kProved : Verdict::kRefuted);
    ++(proof->is_same ? state_.counters.proved_operations : state_.counters.refuted_operations);
  }
  Range* const range = proof->range;
  if (range->live && range->life == proof->life) range->empty = false;
  for (Range* each : proof->pinned) state_.residency.Unpin(each);
  state_.residency.host().Give(&proof->piece);
}

std::vector<RepeatProofs::OutputPiece> RepeatProofs::OutputPiecesOf(const Range& range) {
  std::vector<OutputPiece> pieces;
  for (size_t offset = 0; offset < range.requested_bytes; offset += kPieceBytes)
    pieces.push_back({offset, std::min(kPieceBytes, range.requested_bytes - offset)});
  return pieces;
}

bool RepeatProofs::KeepFirst(Proof* proof) {
  for (const OutputPiece piece : OutputPiecesOf(*proof->range)) {
    if (!CopyPiece(*proof, piece, Toward::kHost)) return false;
    proof->first.Keep(piece.offset, static_cast<const std::byte*>(proof->piece.data), piece.bytes);
  }
  return true;
}

// False when the output cannot be read.
bool RepeatProofs::CompareSecond(Proof* proof) {
  for (const OutputPiece piece : OutputPiecesOf(*proof->range)) {
    if (!CopyPiece(*proof, piece, Toward::kHost)) return false;
    const auto* const second = static_cast<const std::byte*>(proof->piece.data);
    const bool is_same = proof->first.Equals(piece.offset, second, piece.bytes);
    if (!is_same && ordering_rules::kProofsDecide) return true;
  }
  proof->is_same = true;
  return true;
}

// No call can use the output yet.
bool RepeatProofs::PutBack(const Proof& proof) {
  for (const OutputPiece piece : OutputPiecesOf(*proof.range)) {
    std::memcpy(proof.piece.data, proof.first.at(piece.offset), piece.bytes);
    if (!CopyPiece(proof, piece, Toward::kDevice)) return false;
  }
  return true;
}

// The program's bytes are gone.
void RepeatProofs::NoteLost(const Proof& proof) {
  const StateLock lock(state_.locks);
  const RecomputeRecord* const record = state_.recompute_records.Find(proof.id);
  checks_.NoteWrong(record ? record->launch.function() : nullptr);
}

bool RepeatProofs::CopyPiece(const Proof& proof, OutputPiece piece, Toward toward) {
  CUDA_MEMCPY2D copy{};
  const bool to_host = toward == Toward::kHost;
  copy.srcMemoryType = to_host ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  copy.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = copy.dstDevice = proof.range->base + piece.offset;
  copy.srcHost = copy.dstHost = proof.piece.data;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = piece.bytes;
  copy.Height = 1;
  Use use;
  {
    const StateLock lock(state_.locks);
    use = state_.residency.copies().OnOwnStream(copy);
  }
  return use.stream && waits_.AwaitQuietly(use);
}

}  // namespace spillway::interposer
