// The seam between the hooks and the job's memory: what every hook that names device memory does
// around its call.
//
// A hook says which addresses the call names; Around finds them, makes them resident, makes the
// driver's call and notes its place in the stream. Before the program's first allocation, or inside
// another hook, it is the driver's call alone.
#pragma once

#include "interposer/entry/call_claims.h"
#include "interposer/entry/reentry_guard.h"
#include "interposer/execute/call_scope.h"
#include "interposer/execute/ordering_rules.h"
#include "interposer/ledger/host_regions.h"
#include "interposer/ledger/visible_work.h"
#include "interposer/record/operation_shape.h"
#include "interposer/runtime.h"

namespace spillway::entry {

using interposer::Addresses;
using interposer::Effect;
using interposer::ForEachJob;
using interposer::JobMemory;
using interposer::StreamName;
using interposer::Transfer;
using interposer::VisibleWork;

// Collects what may be managed addresses; a word that is none costs two comparisons.
class Collector {
 public:
  // Null: before the first job there is no managed memory, but there may be memory of the host's.
  explicit Collector(const JobMemory* job)
      : managed_(job ? job->Bounds() : interposer::WordBounds{}),
        on_host_(interposer::HostRegions::Bounds()) {}
  void operator()(CUdeviceptr word) {
    if (managed_.Contain(word)) {
      addresses_.push_back(word);
    } else if (on_host_.Contain(word)) {
      AddHostWord(word);
    }
  }
  void operator()(const void* pointer) { (*this)(reinterpret_cast<CUdeviceptr>(pointer)); }
  // The call puts something into device memory: both ends are named, and what it brings is looked
  // at afterwards.
  void Transferred(const Transfer& transfer) {
    (*this)(transfer.to);
    (*this)(transfer.from);
    Says(static_cast<std::uint64_t>(transfer.source));
    Says(transfer.width_bytes * transfer.rows);
    transfers_.push_back(transfer);
  }
  // The call reads these bytes, and puts them where no allocation is: on the host, into an array.
  void Reads(CUdeviceptr from, std::size_t bytes) {
    (*this)(from);
    Says(bytes);
    reads_.push_back({from, bytes});
  }
  // It launches a graph, of which all nodes are told.
  void IsGraph() { is_graph_ = true; }
  // Beside its copies and sets the call does more: it runs kernels, or has parts that nobody could
  // read.
  void DoesMore() { does_more_ = true; }
  // Such a part is given this address, and may read and write what is there.
  void Works(CUdeviceptr word) {
    (*this)(word);
    works_.push_back(word);
  }
  // It is a launch, of which the library's call around it knows what it does.
  void TakesClaims() { claims_ = library_call ? library_call->claims : nullptr; }
  // It is this launch, all of it; to be told when it may be made again.
  void IsLaunch(const interposer::LaunchCall* launch) { launch_ = launch; }
  const interposer::LaunchCall* launch() const { return launch_; }
  // What the launch does to memory is known: by the library's documents, or since it is copies and
  // sets alone.
  bool IsDocumented() const { return (claims_ && !claims_->empty()) || (is_graph_ && !does_more_); }
  // The name of what the call does, for the trace; it lives as long as the process.
  void IsCalled(const char* name) { name_ = name; }
  const char* name() const { return name_; }
  // What the call is, beside what it names (Note [Shapes]).
  void Says(std::uint64_t word) { shape_ = interposer::MixShape(shape_, word); }
  // The host may see what it does, or change what it reads, without a call.
  void Shows() { shows_ = true; }
  bool shows() const { return shows_ || names_visible_; }
  bool names_visible() const { return names_visible_; }
  // What it brings may be another thing than what is there now.
  void IsUnsure() { is_unsure_ = true; }
  // It runs what nobody has looked at yet; `note_scan(what)` is called once somebody has.
  void IsNew(void (*note_scan)(void*), void* what) {
    note_scan_ = note_scan;
    new_ = what;
  }
  bool is_new() const { return note_scan_ != nullptr; }
  void NoteScan() const { note_scan_(new_); }
  bool MightBeOurs(CUdeviceptr word) const { return managed_.Contain(word); }
  Addresses& addresses() { return addresses_; }  // Begin adds what a launch leads to beside them
  // What may lead to memory of the host's that kernels reach.
  const interposer::HostWords& host_words() const { return host_words_; }
  bool is_unsure() const { return is_unsure_; }
  interposer::Shape shape() const { return shape_; }
  const interposer::Transfers& transfers() const { return transfers_; }
  // What is known of the roles of what the call names; null: nothing. `own` is for those of copies
  // and sets, of a call or a graph: the union over all its parts. (Note [Roles] in ledger/claims.h)
  const interposer::Claims* Claims(interposer::Claims* own) const {
    if (transfers_.empty() && reads_.empty()) return claims_;
    const bool unites = interposer::ordering_rules::kGraphsUniteTheirNodes;
    AddClaims(transfers_, own, reads_.empty() && !(does_more_ && unites));
    for (const Bytes& read : reads_) own->Reads(read.address, read.count);
    if (!unites) return own;
    for (CUdeviceptr word : works_) own->Touches(word);
    return own;
  }
  // All that is known of the call; `own_claims` is for those that it makes itself.
  interposer::CallFacts Facts(interposer::Claims* own_claims) const {
    return {.is_new = is_new(),
            .is_documented = IsDocumented(),
            .shows = shows() || VisibleWork::shows_everything(),
            .host_words = &host_words_,
            .claims = Claims(own_claims),
            .launch = launch_,
            .call = launch_ ? library_call : nullptr,
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
  Addresses addresses_;
  interposer::HostWords host_words_;
  interposer::Transfers transfers_;
  base::InlineVector<Bytes, 2> reads_;
  base::InlineVector<CUdeviceptr, 2> works_;
  bool does_more_ = false;
  bool is_graph_ = false;
  bool names_visible_ = false;
  bool shows_ = false;
  bool is_unsure_ = false;
  void (*note_scan_)(void*) = nullptr;
  void* new_ = nullptr;
  const char* name_ = nullptr;
  interposer::Shape shape_ = 0;
  const interposer::Claims* claims_ = nullptr;
  const interposer::LaunchCall* launch_ = nullptr;
};

// From here on memory may be used, or kernels be gone, without our noticing: all bytes are
// somewhere. False where not.
inline bool EndRecords() {
  return !interposer::FindJob([](JobMemory* job) { return !job->replays().EndRecords(); });
}

namespace internal {

// Before the first job, too, kernels may be given addresses of memory that the host sees, and keep
// them.
template <class Collect>
void ShowWithoutJob(Effect effect, Collect& collect) {
  Collector collector(nullptr);
  collect(collector);
  const bool is_given = effect == Effect::kLaunches && collector.names_visible();
  if (is_given || interposer::HostRegions::Instance().AreBroughtBy(collector.transfers()))
    VisibleWork::ShowEverything();
}

// Around the call, the jobs from `place` on, each with what the call names of its memory.
template <class Collect, class Call>
CUresult AroundJobs(int place, StreamName stream, Effect effect, Collect& collect, Call& call) {
  const bool is_first = place == 0;
  JobMemory* const job = interposer::Jobs().Next(&place);
  if (is_first) interposer::DeferredWaits::WorkIsUnseen();
  if (!job) {
    if (is_first && interposer::HostRegions::AnyEver()) ShowWithoutJob(effect, collect);
    return call();
  }
  Collector collector(job);
  collect(collector);
  if (collector.is_unsure()) job->post_launch_scan().SomethingNew();
  // A kernel may keep what it is given.
  if (collector.names_visible() && effect == Effect::kLaunches) VisibleWork::ShowEverything();
  interposer::Claims own_claims;
  interposer::CallScope scope(job->calls(), collector.addresses(), stream, effect,
                              collector.Facts(&own_claims));
  if (scope.answer() != CUDA_SUCCESS) return scope.answer();
  if (library_call) NoteInCall(collector.addresses(), scope.reaches());
  const CUresult result = AroundJobs(place, stream, effect, collect, call);
  if (scope.End(result, collector.transfers())) collector.NoteScan();
  return result;
}

}  // namespace internal

// `collect(add)` calls add(address) for each address that the call names, once for each job;
// `call()` is the driver's function.
template <class Collect, class Call>
CUresult Around(StreamName stream, Effect effect, Collect collect, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  return internal::AroundJobs(0, stream, effect, collect, call);
}

}  // namespace spillway::entry
