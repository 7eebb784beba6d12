// How recipes begin, and how it is proved that an operation makes the same bytes again. (Note [Recipes] in recipe.h)
//
// The proof is made in the thread of the call when it has ended: its launch is made a second time, over its own output, and what
// it made first is compared with what it makes then. Nobody can use the output meanwhile; if it differs its first bytes come back.
#include <algorithm>
#include <cstring>
#include <utility>

#include "interposer/driver/calling_context.h"
#include "interposer/driver/driver_api.h"
#include "interposer/execute/calls.h"
#include "interposer/execute/job_memory.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/execute/output_copy.h"
#include "scheduler/learn/job_event.h"

namespace spillway::interposer {

using driver::CurrentContext;
using driver::Driver;
using driver::RelaxedCapture;
using Verdict = Recipes::Verdict;

namespace {

constexpr size_t kPieceBytes = kGranuleBytes;  // of pinned memory, through which an output is read

void AddOnce(Tracked* memory, Recipe* recipe) {
  if (std::find(recipe->inputs.begin(), recipe->inputs.end(), memory) == recipe->inputs.end())
    recipe->inputs.push_back(memory);
}

// All that the launch names in the range, and all that the call says of it, is written aside.
bool IsAside(const Range& range, const Claims& claims, const Addresses& addresses,
             const RecordedLaunch& launch) {
  const CUdeviceptr end = range.base + range.size_bytes;
  const auto claims_all = claims.all();
  const bool is_claimed = std::all_of(claims_all.begin(), claims_all.end(), [&](const Claims::Claim& claim) {
    return claim.kind == Claims::Kind::kAside || claim.end <= range.base || claim.begin >= end;
  });
  return is_claimed && std::all_of(addresses.begin(), addresses.end(), [&](CUdeviceptr address) {
           if (address < range.base || address >= end) return true;
           return claims.KindAt(address) == Claims::Kind::kAside && launch.LeadsInto(address, address + 1);
         });
}

bool IsShared(const SlabBlock& block) {
  return std::any_of(block.slab->chunks.begin(), block.slab->chunks.end(),
                     [](const Chunk& chunk) { return chunk.shared; });
}

// It is used by calls that name it alone, and `pins` is what this call holds of it.
bool IsPlain(const Tracked& memory, int pins) {
  if (memory.free_is_due) return false;
  if (IsBlock(&memory)) return !IsShared(static_cast<const SlabBlock&>(memory));
  const auto& range = static_cast<const Range&>(memory);
  return range.live && range.unmovable == Unmovable::kNo && range.holds == 0 && range.pins == pins;
}

}  // namespace

// Null where the launch cannot be made again.
std::unique_ptr<Recipe> JobMemory::RecipeOf(const Addresses& addresses, const TouchSet& set,
                                            size_t* lacks_scratch_bytes) {
  auto launch = RecordedLaunch::Of(*set.launch);
  if (!launch || !set.claims || !set.claims->AreApart()) return nullptr;
  auto recipe = std::make_unique<Recipe>();
  recipe->launch = std::move(*launch);
  const bool can = AddMemory(set, addresses, recipe.get()) && NamesAllClaimed(*set.claims, *recipe) &&
                   !LeadsElsewhere(recipe->launch) &&
                   MoveAside(*set.claims, recipe.get(), lacks_scratch_bytes);
  return can ? std::move(recipe) : nullptr;
}

// All that the call is given is ours, and all that its launch names is of a role that fits.
bool JobMemory::AddMemory(const TouchSet& set, const Addresses& addresses, Recipe* recipe) const {
  for (const Claims::Claim& claim : set.claims->all()) {
    if (!state_.ledger.Find(claim.begin)) return false;
  }
  const size_t named = set.at_once ? set.ranges.size() : set.named;
  for (size_t i = set.at_once ? 1 : 0; i < named; ++i) {
    Range* const range = set.ranges[i];
    const Role role = RoleAt(set, i);
    if (role == Role::kReads) {
      AddOnce(range, recipe);
    } else if ((role == Role::kOverwrites || !ordering_rules::kRecipesOverwriteAll) &&
               (!recipe->output || recipe->output == range)) {
      recipe->output = range;
    } else if (!IsAside(*range, *set.claims, addresses, recipe->launch)) {
      return false;
    }
  }
  for (CUdeviceptr address : addresses) {
    Allocation* const found = state_.ledger.Find(address);
    if (!found) return false;
    if (!IsBlock(found)) continue;
    const Claims::Kind kind = set.claims->KindAt(address);
    const bool is_aside = kind == Claims::Kind::kAside && recipe->launch.LeadsInto(address, address + 1);
    if (kind == Claims::Kind::kReads) {
      AddOnce(static_cast<Tracked*>(found), recipe);
    } else if (!is_aside) {
      return false;
    }
  }
  return recipe->output != nullptr;
}

// All that the call is said to read or to overwrite is named by its launch: nothing is reached in another way.
bool JobMemory::NamesAllClaimed(const Claims& claims, const Recipe& recipe) const {
  const auto all = claims.all();
  return std::all_of(all.begin(), all.end(), [&](const Claims::Claim& claim) {
    if (claim.kind == Claims::Kind::kAside) return true;
    const Allocation* const found = state_.ledger.Find(claim.begin);
    return found == recipe.output ||
           std::find(recipe.inputs.begin(), recipe.inputs.end(), found) != recipe.inputs.end();
  });
}

// The driver knows memory there that is not ours: managed, another process's, on the host, of a pool of its own. Who writes that is not
// known. An integer that looks like such an address costs the recipe, too.
bool JobMemory::LeadsElsewhere(const RecordedLaunch& launch) const {
  constexpr CUdeviceptr kLeast = CUdeviceptr{1} << 32,
                        kEnd = CUdeviceptr{1} << 57;  // else a number, or several
  return launch.AnyWord([this](CUdeviceptr word) {
    unsigned int type = 0;
    return word >= kLeast && word < kEnd && !state_.ledger.MightBeManaged(word) &&
           Driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) == CUDA_SUCCESS;
  });
}

// All is at its place, and the launch not yet made.
void JobMemory::BeginRecipe(const Addresses& addresses, TouchSet* set) {
  if (!set->stream || set->recorded || set->reaches || set->names_freed || set->stream->foreign) return;
  const bool is_kept = state_.drops_eagerly || set->step.keeps_recipe;
  if (!is_kept && !state_.recorder.IsRecording()) return;
  const std::uint64_t token =
      scheduler::TokenOf(scheduler::JobEvent::Operation(CallRecorder::ShapeOf(*set), {}));
  {
    const StateLock lock(state_.locks);
    const Verdict verdict = state_.recipes.VerdictOn(token);
    if (verdict == Verdict::kRefuted || (verdict == Verdict::kProved && !is_kept)) return;
  }
  set->call->job = this;
  auto recipe = RecipeOf(addresses, *set, &set->call->lacks_scratch_bytes);
  if (!recipe) return;
  recipe->token = token;
  recipe->is_kept = is_kept;
  const StateLock lock(state_.locks);
  if (!MayBegin(*recipe, *set)) return;
  const Recipe* const kept = state_.recipes.Keep(std::move(recipe));
  // A call that passed the gates before they were closed might be made behind this one.
  if (calls::OthersInProgress() || WaitingWorkMayUse(*kept, set->stream)) return Forget(kept);
  set->call->recipe = kept->id;
}

// What is enqueued on other streams may wait for the program without our knowing, in a kernel that looks for it, and come after the
// launch though it was enqueued before.
bool JobMemory::WaitingWorkMayUse(const Recipe& recipe, const StreamState* stream) {
  UseList others = state_.timeline.Unfinished();
  const StreamState* const replays = replays_;
  others.items().EraseIf([=](Use use) { return use.stream == stream || use.stream == replays; });
  const auto may_be_used = [&](Tracked* input) SPILLWAY_REQUIRES(kStateLock) {
    return IsBlock(input) ? state_.slabs.MayBeUsedOn(AsBlock(input), others, stream)
                          : state_.residency.MayBeUsedOn(AsRange(input), others);
  };
  bool may_any = state_.residency.MayBeUsedOn(recipe.output, others);
  for (Tracked* input : recipe.inputs)
    may_any = may_be_used(input) || may_any;  // all are asked: they note when
  return may_any;
}

bool JobMemory::MayBegin(const Recipe& recipe, const TouchSet& set) {
  const int own_calls = set.at_once ? 0 : 1;
  if (recipe.is_kept ? !MayDropAny() : CapturesGoOn() || state_.MustStay()) return false;
  if (driver::ContextCensus::HasSeveral() || state_.calls.locked != own_calls ||
      state_.timeline.AnyStreamIsHeld())
    return false;
  return !recipe.output->recipe && IsPlain(*recipe.output, own_calls) &&
         std::all_of(recipe.inputs.begin(), recipe.inputs.end(),
                     [&](const Tracked* input) { return IsPlain(*input, own_calls); });
}

void JobMemory::NoteMade(const TouchSet& set) {
  const StateLock lock(state_.locks);
  Recipe* const recipe = state_.recipes.Find(set.call->recipe);
  if (!recipe) return;
  if (set.failed) return Forget(recipe);
  recipe->made_by = set.use;
  recipe->state = Recipe::State::kMade;
}

void JobMemory::CallEnded(const LibraryCall& call) {
  const RelaxedCapture relaxed(true);
  const CurrentContext current(state_.context);
  if (call.lacks_scratch_bytes) TakeScratch(call.lacks_scratch_bytes);
  bool is_proved;
  {
    const StateLock lock(state_.locks);
    const Recipe* const recipe = state_.recipes.Find(call.recipe);
    if (!recipe) return;
    if (call.works != 1 || recipe->state != Recipe::State::kMade) return ForgetAfterCall(recipe);
    is_proved = state_.recipes.VerdictOn(recipe->token) == Verdict::kProved;
  }
  if (!is_proved) Prove(call.recipe);
  Use made_by;
  {
    const StateLock lock(state_.locks);
    Recipe* const recipe = state_.recipes.Find(call.recipe);
    if (!recipe) return;
    if (!recipe->is_kept || state_.recipes.VerdictOn(recipe->token) != Verdict::kProved)
      return ForgetAfterCall(recipe);
    recipe->state = Recipe::State::kLive;
    made_by = recipe->made_by;
    if (std::exchange(recipe->drop_is_due, false)) DropWhatIsDue(recipe->output);
  }
  if (state_.drops_eagerly) DropAll(made_by);
}

// What a plan wanted to drop is copied instead.
void JobMemory::ForgetAfterCall(const Recipe* recipe) {
  Range* const due = recipe->drop_is_due ? recipe->output : nullptr;
  Forget(recipe);
  if (due) DropWhatIsDue(due);
}

// All that can be dropped is, and has left when the call's own work is over.
void JobMemory::DropAll(Use last) {
  {
    const StateLock lock(state_.locks);
    for (const std::uint64_t id : state_.recipes.All()) Drop(state_.recipes.Find(id)->output);
  }
  waits_.AwaitQuietly(last);
  const StateLock lock(state_.locks);
  state_.residency.CollectLeft();
}

bool JobMemory::MayReplay(std::uint64_t token) {
  const StateLock lock(state_.locks);
  return state_.recipes.VerdictOn(token) == Verdict::kProved;
}

struct JobMemory::Proof {
  std::uint64_t id = 0;
  Range* range = nullptr;
  std::uint32_t life = 0;
  base::InlineVector<Range*, 8> pinned;
  OutputCopy first;
  HostBuffer piece;
  bool was_run = false;  // the output is what the second launch made
  bool is_same = false;
};

void JobMemory::Prove(std::uint64_t id) {
  const base::ScopedCount call(&state_.calls.for_memory);
  const MakingLock making(state_.locks);
  Proof proof;
  if (!BeginProof(id, &proof)) return;
  const bool is_complete = RunTwice(&proof);
  if (ordering_rules::kRefutedIsPutBack && proof.was_run && !proof.is_same) PutBack(proof);
  EndProof(&proof, is_complete);
}

// Where it lacks host memory it is left for another time.
bool JobMemory::BeginProof(std::uint64_t id, Proof* proof) {
  const StateLock lock(state_.locks);
  const Recipe* const recipe = state_.recipes.Find(id);
  if (!recipe || state_.timeline.AnyStreamIsHeld() || state_.all_memory.device_is_idle()) return false;
  state_.timeline.EventFor(recipe->made_by);  // before another thread lets the stream wait for the program
  proof->id = id;
  proof->range = recipe->output;
  proof->life = recipe->output->life;
  proof->pinned.push_back(recipe->output);
  for (Tracked* input : recipe->inputs) {
    if (!IsBlock(input)) proof->pinned.push_back(AsRange(input));
  }
  const auto is_there = [this](const Range* range) SPILLWAY_REQUIRES(kStateLock) {
    return state_.residency.IsMapped(range) && !range->empty;
  };
  const bool all_there = recipe->output->pins == 0 && !recipe->output->host.data &&
                         std::all_of(proof->pinned.begin(), proof->pinned.end(), is_there);
  if (!all_there || !proof->first.Take(recipe->output->requested_bytes)) return false;
  if (!state_.residency.host().TakeIdle(kPieceBytes, &proof->piece)) return false;
  for (Range* range : proof->pinned) state_.residency.Pin(range);
  recipe->output->empty = true;  // a call that names it waits for who makes memory
  return true;
}

// False when there is nothing to compare.
bool JobMemory::RunTwice(Proof* proof) {
  Use use;
  {
    const StateLock lock(state_.locks);
    const Recipe* const recipe = state_.recipes.Find(proof->id);
    if (!recipe) return false;
    use = recipe->made_by;
  }
  if (!AwaitFirst(use, proof->id) || !KeepFirst(proof)) return false;
  {
    const StateLock lock(state_.locks);
    Recipe* const recipe = state_.recipes.Find(proof->id);
    StreamState* const stream = StreamForReplay(nullptr);
    if (!recipe || LaunchAgain(recipe, stream, TraceCause::kNone) != CUDA_SUCCESS) return false;
    proof->was_run = true;
    use = {stream, Timeline::IssuedOn(stream)};
  }
  return waits_.AwaitQuietly(use) && CompareSecond(proof);
}

bool JobMemory::KeepFirst(Proof* proof) {
  for (const OutputPiece piece : OutputPiecesOf(*proof->range)) {
    if (!CopyPiece(*proof, piece, Toward::kHost)) return false;
    proof->first.Keep(piece.offset, static_cast<const std::byte*>(proof->piece.data), piece.bytes);
  }
  return true;
}

// As far as they are equal. False when it cannot be read.
bool JobMemory::CompareSecond(Proof* proof) {
  for (const OutputPiece piece : OutputPiecesOf(*proof->range)) {
    if (!CopyPiece(*proof, piece, Toward::kHost)) return false;
    const auto* const second = static_cast<const std::byte*>(proof->piece.data);
    const bool is_same = proof->first.Equals(piece.offset, second, piece.bytes);
    if (!is_same && ordering_rules::kProofsDecide) return true;
  }
  proof->is_same = true;
  return true;
}

// Nobody can use the output yet.
void JobMemory::PutBack(const Proof& proof) {
  for (const OutputPiece piece : OutputPiecesOf(*proof.range)) {
    std::memcpy(proof.piece.data, proof.first.at(piece.offset), piece.bytes);
    if (!CopyPiece(proof, piece, Toward::kDevice)) return;
  }
}

// It may wait for what the program does only after the call, without our knowing: then nobody waits for its kind again.
bool JobMemory::AwaitFirst(Use use, std::uint64_t id) {
  if (waits_.AwaitProgress([&]() SPILLWAY_REQUIRES(kStateLock) { return state_.timeline.Done(use); }))
    return true;
  const StateLock lock(state_.locks);
  if (const Recipe* const recipe = state_.recipes.Find(id))
    state_.recipes.Judge(recipe->token, Verdict::kRefuted);
  return false;
}

void JobMemory::EndProof(Proof* proof, bool is_complete) {
  const StateLock lock(state_.locks);
  const Recipe* const recipe = state_.recipes.Find(proof->id);
  if (is_complete && recipe) {
    state_.recipes.Judge(recipe->token, proof->is_same ? Verdict::kProved : Verdict::kRefuted);
    ++(proof->is_same ? state_.counters.proved_operations : state_.counters.refuted_operations);
  }
  Range* const range = proof->range;
  if (range->live && range->life == proof->life) range->empty = false;
  for (Range* each : proof->pinned) state_.residency.Unpin(each);
  state_.residency.host().Give(&proof->piece);
}

std::vector<JobMemory::OutputPiece> JobMemory::OutputPiecesOf(const Range& range) {
  std::vector<OutputPiece> pieces;
  for (size_t offset = 0; offset < range.requested_bytes; offset += kPieceBytes)
    pieces.push_back({offset, std::min(kPieceBytes, range.requested_bytes - offset)});
  return pieces;
}

bool JobMemory::CopyPiece(const Proof& proof, OutputPiece piece, Toward toward) {
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
    use = state_.residency.CopyAside(copy);
  }
  return use.stream && waits_.AwaitQuietly(use);
}

}  // namespace spillway::interposer
