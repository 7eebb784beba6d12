// The seam between the hooks and the job's memory, for every hook that names device memory.
//
// A hook lists the addresses that the call names. Before the program's first allocation, or inside
// another hook, Around only makes the driver's call.
#pragma once

#include <algorithm>

#include "interposer/entry/call_claims.h"
#include "interposer/entry/end_records.h"
#include "interposer/entry/reentry_guard.h"
#include "interposer/entry/wrong_results.h"
#include "interposer/execute/call_scope.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/execute/turn_gate.h"
#include "interposer/ledger/host_regions.h"
#include "interposer/ledger/visible_work.h"
#include "interposer/record/operation_shape.h"
#include "interposer/runtime/runtime.h"

namespace spillway::entry {

using interposer::Addresses;
using interposer::Effect;
using interposer::ForEachJob;
using interposer::JobMemory;
using interposer::StreamName;
using interposer::Transfer;
using interposer::VisibleWork;

// Collects words that may be managed addresses. Any other word costs one comparison.
class Collector {
 public:
  // Null before the first job: then kernels may only reach host memory.
  explicit Collector(const JobMemory* job)
      : managed_(job ? job->Bounds() : interposer::WordBounds{}),
        on_host_(interposer::HostRegions::Bounds()),
        any_(interposer::WordBounds::Around(managed_, on_host_)) {}
  void operator()(CUdeviceptr word) {
    if (!any_.Contain(word)) return;
    if (managed_.Contain(word)) {
      addresses_.push_back(word);
    } else if (on_host_.Contain(word)) {
      AddHostWord(word);
    }
  }
  void operator()(const void* pointer) { (*this)(reinterpret_cast<CUdeviceptr>(pointer)); }
  // What is copied is scanned for addresses afterwards.
  void Transferred(const Transfer& transfer) {
    (*this)(transfer.to);
    (*this)(transfer.from);
    MixIntoShape(static_cast<std::uint64_t>(transfer.source));
    MixIntoShape(transfer.width_bytes * transfer.rows);
    transfers_.push_back(transfer);
  }
  // To the host or into an array.
  void Reads(CUdeviceptr from, std::size_t bytes) {
    (*this)(from);
    MixIntoShape(bytes);
    reads_.push_back({from, bytes});
  }
  // Not only to what a job manages: to variables of modules, say.
  bool WritesElsewhere() const {
    return std::any_of(transfers_.begin(), transfers_.end(),
                       [this](const Transfer& transfer) { return !managed_.Contain(transfer.to); });
  }
  void MarkGraph() { is_graph_ = true; }
  // Beside copies and sets the call runs kernels, or has unreadable parts.
  void MarkMixed() { does_more_ = true; }
  // Such a part is given this address, and may read and write there.
  void MayTouch(CUdeviceptr word) {
    (*this)(word);
    may_touch_.push_back(word);
  }
  // Takes the claims of the library call around the launch.
  void TakeClaims() { claims_ = library_call ? library_call->claims : nullptr; }
  // `is_repeatable`: the library's call around it says so.
  void SetLaunch(const interposer::LaunchCall* launch, bool is_repeatable) {
    launch_ = launch;
    is_repeatable_ = is_repeatable;
  }
  const interposer::LaunchCall* launch() const { return launch_; }
  // Whether all effects on memory are known: documented by the library, or only copies and sets.
  bool IsDocumented() const { return (claims_ && !claims_->empty()) || (is_graph_ && !does_more_); }
  // The string must live as long as the process.
  void SetTraceName(const char* name) { name_ = name; }
  const char* name() const { return name_; }
  // See Note [Shapes].
  void MixIntoShape(std::uint64_t word) { shape_.mixed = interposer::MixShape(shape_.mixed, word); }
  // The dimensions outlive the call.
  void SetLaunchShape(interposer::Shape kernel, const interposer::LaunchDimensions* dimensions) {
    shape_.kernel = kernel;
    shape_.launched = dimensions;
  }
  // The host may see the call's effect, or change its input, without a further call.
  void MarkVisible() { is_visible_ = true; }
  bool is_visible() const { return is_visible_ || names_visible_; }
  bool names_visible() const { return names_visible_; }
  // The bytes that the call reads may be others than those there now.
  void MarkUnsure() { is_unsure_ = true; }
  // The call runs unscanned code. `note_scan(what)` is called after its post-launch scan.
  void MarkNew(void (*note_scan)(void*), void* what) {
    note_scan_ = note_scan;
    new_ = what;
  }
  bool is_new() const { return note_scan_ != nullptr; }
  void NoteScan() const { note_scan_(new_); }
  bool MightBeOurs(CUdeviceptr word) const { return managed_.Contain(word); }
  Addresses& addresses() { return addresses_; }  // Begin adds indirect ones
  // Words that may be addresses of host memory that kernels reach.
  const interposer::HostWords& host_words() const { return host_words_; }
  bool is_unsure() const { return is_unsure_; }
  const interposer::Transfers& transfers() const { return transfers_; }
  // The known roles of the named memory; null: none. `own` receives the claims of copies and sets,
  // united over all parts of a call or graph. (Note [Roles] in ledger/claims.h)
  const interposer::Claims* Claims(interposer::Claims* own) const {
    if (transfers_.empty() && reads_.empty()) return claims_;
    const bool unites = interposer::ordering_rules::kGraphsUniteTheirNodes;
    AddClaims(transfers_, own, reads_.empty() && !(does_more_ && unites));
    for (const Bytes& read : reads_) own->Reads(read.address, read.count);
    if (!unites) return own;
    for (CUdeviceptr word : may_touch_) own->Touches(word);
    return own;
  }
  interposer::CallFacts Facts(interposer::Claims* own_claims) const {
    return {.is_new = is_new(),
            .is_documented = IsDocumented(),
            .shows = is_visible() || VisibleWork::shows_everything(),
            .host_words = &host_words_,
            .claims = Claims(own_claims),
            .launch = launch_,
            .call = is_repeatable_ ? library_call : nullptr,
            .shape = shape_,
            .name = name_};
  }

 private:
  struct Bytes {
    CUdeviceptr address;
    std::size_t count;
  };

  void AddHostWord(CUdeviceptr word) {
    host_words_.push_back(word);
    names_visible_ = names_visible_ || interposer::HostRegions::Instance().Holds(word);
  }

  const interposer::WordBounds managed_, on_host_;
  const interposer::WordBounds any_;  // around both
  Addresses addresses_;
  interposer::HostWords host_words_;
  interposer::Transfers transfers_;
  base::InlineVector<Bytes, 2> reads_;
  base::InlineVector<CUdeviceptr, 2> may_touch_;
  bool does_more_ = false;
  bool is_graph_ = false;
  bool names_visible_ = false;
  bool is_visible_ = false;
  bool is_unsure_ = false;
  void (*note_scan_)(void*) = nullptr;
  void* new_ = nullptr;
  const char* name_ = nullptr;
  interposer::CallShape shape_;
  const interposer::Claims* claims_ = nullptr;
  const interposer::LaunchCall* launch_ = nullptr;
  bool is_repeatable_ = false;
};

// The scope of a call that enqueues work: a job that begins meanwhile, on another thread, does not
// know of it.
class BeginningJobs {
 public:
  BeginningJobs() = default;
  BeginningJobs(const BeginningJobs&) = delete;
  BeginningJobs& operator=(const BeginningJobs&) = delete;
  ~BeginningJobs() {
    if (interposer::Jobs().begun() != begun_)
      ForEachJob([](JobMemory* job) { job->free_waits().WorkWasUnseen(); });
  }

 private:
  const unsigned begun_ = interposer::Jobs().begun();
};

namespace internal {

// Even before the first job, kernels may receive addresses of host-visible memory, and keep them.
template <class Collect>
void NoteVisibleWithoutJob(Effect effect, Collect& collect) {
  if (!interposer::ordering_rules::kEarlyAddressesAreNoted) return;
  Collector collector(nullptr);
  collect(collector);
  const bool is_given = effect == Effect::kLaunches && collector.names_visible();
  if (is_given || interposer::HostRegions::Instance().AreBroughtBy(collector.transfers()))
    VisibleWork::MakeAllWorkVisible();
}

// `place`: where the search for the next job goes on.
template <class Collect, class Call>
CUresult AroundJob(JobMemory* job, bool is_first, int place, StreamName stream, Effect effect,
                   Collect& collect, Call& call) {
  Collector collector(job);
  collect(collector);
  if (collector.is_unsure()) job->post_launch_scan().AwaitNewWork();
  if (collector.names_visible() && effect == Effect::kLaunches) {
    VisibleWork::MakeAllWorkVisible();
    const CUresult ended = is_first ? EndRecordsOfVisibleWork() : CUDA_SUCCESS;
    if (ended != CUDA_SUCCESS) return ended;
  }
  interposer::Claims own_claims;
  interposer::CallFacts facts = collector.Facts(&own_claims);
  if (!collector.transfers().empty())
    facts.writes_variables = collector.WritesElsewhere() &&
                             job->stored_addresses().WritesVariables(collector.transfers());
  interposer::CallScope scope(job->calls(), collector.addresses(), stream, effect, facts);
  if (scope.answer() != CUDA_SUCCESS) return scope.answer();
  if (library_call) NoteInCall(collector.addresses(), scope.reaches());
  JobMemory* const next = interposer::Jobs().Next(&place);
  const CUresult result =
      next ? AroundJob(next, false, place, stream, effect, collect, call) : call();
  if (scope.End(result, collector.transfers())) collector.NoteScan();
  return result;
}

template <class Collect, class Call>
CUresult AroundJobs(StreamName stream, Effect effect, Collect& collect, Call& call) {
  int place = 0;
  JobMemory* const first = interposer::Jobs().Next(&place);
  interposer::DeferredWaits::WorkIsUnseen();
  if (first) return AroundJob(first, true, place, stream, effect, collect, call);
  if (interposer::HostRegions::AnyEver()) NoteVisibleWithoutJob(effect, collect);
  return call();
}

}  // namespace internal

// `collect(add)` adds each address that the call names, once per job.
template <class Collect, class Call>
CUresult Around(StreamName stream, Effect effect, Collect collect, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  const interposer::TurnPass turn;
  if (const CUresult ended = EndRecordsOfVisibleWork(); ended != CUDA_SUCCESS) return ended;
  const BeginningJobs beginning;
  const CUresult result = internal::AroundJobs(stream, effect, collect, call);
  return effect == Effect::kLaunches ? result : UnlessWrong(result);
}

}  // namespace spillway::entry
