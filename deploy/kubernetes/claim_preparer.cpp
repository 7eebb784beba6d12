#include "deploy/kubernetes/claim_preparer.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "deploy/kubernetes/pod_terms.h"
#include "deploy/kubernetes/resource_slice.h"

namespace spillway::kubernetes {
namespace {

constexpr char kNvidiaKind[] = "nvidia.com/gpu=";
constexpr int64_t kSecond = 1'000'000'000;
// Of a call of kubelet's: half of what it waits, so that a second one can wait for the first.
constexpr int64_t kCallNs = 20 * kSecond;
constexpr int64_t kTurnNs = 10 * kSecond;   // of the main loop's calls
constexpr int64_t kLookNs = 10 * kSecond;   // between two looks at shared claims
constexpr int64_t kSearchNs = 5 * kSecond;  // likewise, at all for a pod that waits
constexpr int64_t kLongWaitNs = 30 * kSecond, kWarningNs = 60 * kSecond;
// Of the pause after a refusal of the agent's, from 1 s to 32 s: it may be one for good.
constexpr int kMostDoublings = 6;

int64_t MonotonicNow() { return base::NowNs(CLOCK_MONOTONIC); }

std::set<std::string> Without(const std::set<std::string>& all, const std::set<std::string>& some) {
  std::set<std::string> rest;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(),
                      std::inserter(rest, rest.end()));
  return rest;
}

// The same answer to each claim.
template <class Answers>
Answers ForAll(const std::vector<ClaimName>& names, const base::Status& status) {
  Answers answers;
  for (const ClaimName& name : names) answers.insert_or_assign(name.uid, status);
  return answers;
}

bool IsAllOf(const std::string& text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string::npos;
}

// They become names of files and parts of an address.
base::Status CheckNames(const ClaimName& name) {
  constexpr char kLetters[] = "0123456789abcdefghijklmnopqrstuvwxyz-.";
  if (IsAllOf(name.uid, "0123456789abcdefABCDEF-") && IsAllOf(name.name, kLetters) &&
      IsAllOf(name.name_space, kLetters))
    return base::Ok();
  return base::Error{"kubelet's request names a claim by other letters than Kubernetes allows"};
}

}  // namespace

ClaimPreparer::ClaimPreparer(PreparerOptions options, PreparerServices services)
    : options_(std::move(options)), services_(std::move(services)), file_(options_.state_folder) {}

base::Result<PreparedDevice> ClaimPreparer::Resolve(const AllocatedDevice& device) const {
  for (const Gpu& gpu : services_.gpus()) {
    if (DeviceNameOf(gpu.uuid) != device.device) continue;
    // Without a count, the API server knows no consumable capacity: the claim has the whole device.
    const DeviceShare share{gpu.memory_bytes, device.counted_bytes.value_or(CapacityOf(gpu))};
    const base::Result<MemoryTerms> terms = ResolveTerms(share, device.of_class, device.of_claim);
    if (!terms) return terms.status();
    return PreparedDevice{.request = device.request,
                          .pool = device.pool,
                          .device = device.device,
                          .share_id = device.share_id,
                          .gpu_uuid = gpu.uuid,
                          .terms = *terms,
                          .counted_bytes = share.counted_bytes,
                          .class_limit_bytes = ClassLimitIn(share, device.of_class)};
  }
  return base::Error{"the agent knows no " + device.device, "",
                     "see: spillway status, on this node"};
}

base::Result<ClaimRecord> ClaimPreparer::Resolve(const Claim& claim) const {
  if (claim.devices.empty()) return base::Error{"the claim has no device of this driver"};
  ClaimRecord record{.name = claim.name, .devices = {}, .pods = claim.pods};
  for (const AllocatedDevice& device : claim.devices) {
    base::Result<PreparedDevice> prepared = Resolve(device);
    if (!prepared) return base::Status(prepared.status()).Annotate("request " + device.request);
    record.devices.push_back(*std::move(prepared));
  }
  return record;
}

// `stored`: what was prepared before, or null.
base::Result<ClaimRecord> ClaimPreparer::RecordFor(const ClaimName& name,
                                                   const base::Result<Claim>& fetched,
                                                   const ClaimRecord* stored) const {
  if (!fetched) {
    const int code = fetched.error().code;
    // After a reboot the API server may be away, and the node's pods begin all the same.
    if (stored != nullptr && code != ENOENT && code != kUnusableClaim) return *stored;
    return fetched.status();
  }
  if (fetched->name.uid != name.uid)
    return base::Error{"the claim of this name is another one by now, " + fetched->name.uid};
  base::Result<ClaimRecord> record = Resolve(*fetched);
  // So may the agent, which knows the GPUs.
  if (!record && stored != nullptr && IsSameAllocation(*stored, *fetched)) return *stored;
  return record;
}

std::vector<GivenDevice> ClaimPreparer::GivenBy(const ClaimRecord& claim) const {
  std::vector<GivenDevice> given;
  for (const PreparedDevice& device : claim.devices) {
    given.push_back({device.request,
                     device.pool,
                     device.device,
                     device.share_id,
                     {ClaimDeviceOf(claim.name.uid, device.device)}});
    if (options_.gives_gpus) given.back().cdi_devices.push_back(kNvidiaKind + device.gpu_uuid);
  }
  return given;
}

base::Status ClaimPreparer::WriteSpec(const ClaimRecord& claim) const {
  return base::ReplaceFile(options_.cdi_folder + "/" + ClaimSpecFileOf(claim.name.uid),
                           ClaimSpec(claim, options_.injection), {.mode = 0644});
}

void ClaimPreparer::RemoveSpec(const std::string& uid) const {
  unlink((options_.cdi_folder + "/" + ClaimSpecFileOf(uid)).c_str());
}

base::Status ClaimPreparer::Expect(const std::string& pod, const Preparation& call) const {
  const UnequalPod unequal = call.added.empty() ? UnequalPod::kBound : UnequalPod::kRefuse;
  const base::Result<MemoryTerms> terms = TermsOfPod(call.access.state, pod, unequal);
  return terms ? services_.expect_pod(pod, *terms, call.until) : terms.status();
}

// Tells each pod's terms once in a call, unless they change.
base::Status ClaimPreparer::ExpectPodsOf(ClaimRecord& claim, Preparation& call) const {
  for (const std::string& pod : claim.pods) {
    auto told = call.told.find(pod);
    if (told == call.told.end()) told = call.told.emplace(pod, Expect(pod, call)).first;
    if (!told->second.ok()) return told->second;
    if (base::Status opened = OpenListener(claim, pod, call.until); !opened.ok()) return opened;
    call.access.state.pods_to_expect.erase(pod);
  }
  return base::Ok();
}

base::Status ClaimPreparer::OpenListener(ClaimRecord& claim, const std::string& pod,
                                         const deploy::Deadlines& until) const {
  const base::Result<std::string> socket = services_.open_listener(claim.name.uid, pod, until);
  if (!socket && socket.error().code != deploy::kOlderAgent) return socket.status();
  const std::string path = socket ? *socket : "";
  if (path == claim.job_socket) return base::Ok();
  claim.job_socket = path;
  return WriteSpec(claim);
}

base::Status ClaimPreparer::CloseListeners(DriverState& state,
                                           const deploy::Deadlines& until) const {
  for (auto claim = state.listeners_to_close.begin(); claim != state.listeners_to_close.end();) {
    base::Status closed = services_.close_listener(*claim, until);
    if (!closed.ok())
      return std::move(closed).Annotate("the socket of claim " + *claim + " is not closed yet");
    claim = state.listeners_to_close.erase(claim);
  }
  return base::Ok();
}

// Those that the agent does not forget now are tried again.
base::Status ClaimPreparer::ForgetPods(DriverState& state, const deploy::Deadlines& until) const {
  const std::set<std::string> used = state.Pods();
  for (auto pod = state.pods_to_forget.begin(); pod != state.pods_to_forget.end();) {
    if (used.count(*pod) == 0) {
      base::Status forgotten = services_.forget_pod(*pod, until);
      if (!forgotten.ok())
        return std::move(forgotten).Annotate("the agent has not forgotten pod " + *pod + " yet");
    }
    pod = state.pods_to_forget.erase(pod);
  }
  return base::Ok();
}

// These pods may run already, so each has terms that bound it.
base::Status ClaimPreparer::ExpectPods(DriverState& state, const deploy::Deadlines& until) const {
  base::Status first_error;
  for (auto pod = state.pods_to_expect.begin(); pod != state.pods_to_expect.end();) {
    const base::Result<MemoryTerms> terms = TermsOfPod(state, *pod, UnequalPod::kBound);
    // Without a claim it has ended.
    base::Status expected = terms ? services_.expect_pod(*pod, *terms, until) : base::Ok();
    for (auto& [uid, claim] : state.claims) {
      const bool has_it = std::find(claim.pods.begin(), claim.pods.end(), *pod) != claim.pods.end();
      if (expected.ok() && has_it) expected = OpenListener(claim, *pod, until);
    }
    pod = expected.ok() ? state.pods_to_expect.erase(pod) : std::next(pod);
    if (!expected.ok() && first_error.ok()) first_error = std::move(expected);
  }
  return first_error;
}

// All that the agent has not heard yet. What is left stays in the state file.
base::Status ClaimPreparer::TellAgent(Access& access, const deploy::Deadlines& until) const {
  base::Status forgotten = ForgetPods(access.state, until);
  base::Status expected = ExpectPods(access.state, until);
  base::Status closed = CloseListeners(access.state, until);
  base::Status saved = access.SaveIfChanged();
  for (base::Status* const status : {&saved, &forgotten, &expected, &closed}) {
    if (!status->ok()) return std::move(*status);
  }
  return base::Ok();
}

StateFile::Access ClaimPreparer::Opened(base::Result<Access> opened) const {
  if (!opened->damage.empty())
    services_.warn(opened->damage + "; it is put aside, and the driver begins anew");
  return *std::move(opened);
}

ClaimPreparer::FetchedClaims ClaimPreparer::Fetch(const std::vector<ClaimName>& names,
                                                  int64_t until_ns) const {
  FetchedClaims fetched;
  for (const ClaimName& name : names) {
    const base::Status valid = CheckNames(name);
    fetched.emplace(name.uid, valid.ok() ? services_.get_claim(name, until_ns)
                                         : base::Result<Claim>(
                                               base::Error{valid.text(), "", "", kUnusableClaim}));
  }
  return fetched;
}

// Into the state, for the agent and the disk to follow.
void ClaimPreparer::Admit(const ClaimName& name, const base::Result<Claim>& fetched,
                          Preparation& call) const {
  auto& claims = call.access.state.claims;
  const auto found = claims.find(name.uid);
  const ClaimRecord* const stored = found == claims.end() ? nullptr : &found->second;
  base::Result<ClaimRecord> record = RecordFor(name, fetched, stored);
  if (!record) {
    call.results.insert_or_assign(name.uid, record.status());
    return;
  }
  if (stored != nullptr) record->job_socket = stored->job_socket;
  if (stored != nullptr && *stored == *record) return;
  if (stored == nullptr || !IsSameAllocation(*stored, *fetched)) call.added.insert(name.uid);
  call.access.state.Take(*std::move(record));
}

void ClaimPreparer::Finish(const std::string& uid, Preparation& call) {
  const auto claim = call.access.state.claims.find(uid);
  if (claim == call.access.state.claims.end() || call.results.count(uid) > 0) return;
  base::Status finished = WriteSpec(claim->second);
  if (finished.ok()) finished = ExpectPodsOf(claim->second, call);
  if (finished.ok()) {
    call.results.insert_or_assign(uid, GivenBy(claim->second));
    return;
  }
  call.results.insert_or_assign(uid, std::move(finished));
  if (call.added.count(uid) == 0) return;  // it was prepared before
  call.access.state.Drop(uid);
  call.told.clear();
  RemoveSpec(uid);
}

ClaimPreparer::Prepared ClaimPreparer::Prepare(const std::vector<ClaimName>& names) {
  const int64_t now_ns = MonotonicNow();
  const deploy::Deadlines until{now_ns + deploy::kConnectNs, now_ns + kCallNs};
  const FetchedClaims fetched = Fetch(names, until.answer_ns);
  base::Result<Access> opened = file_.Open(until.answer_ns);
  if (!opened) return ForAll<Prepared>(names, opened.status());
  Preparation call{Opened(std::move(opened)), until};
  // All of a pod's claims come in one request, and its GPUs are alike only with the last of them.
  for (const ClaimName& name : names) Admit(name, fetched.at(name.uid), call);
  if (base::Status saved = call.access.SaveIfChanged(); !saved.ok())
    return ForAll<Prepared>(names, saved);
  for (const ClaimName& name : names) Finish(name.uid, call);
  const base::Status told = TellAgent(call.access, {now_ns, until.answer_ns});
  if (!told.ok()) services_.warn(told.text());
  return std::move(call.results);
}

std::map<std::string, base::Status> ClaimPreparer::Unprepare(const std::vector<ClaimName>& names) {
  using Results = std::map<std::string, base::Status>;
  const int64_t now_ns = MonotonicNow();
  base::Result<Access> opened = file_.Open(now_ns + kCallNs);
  if (!opened) return ForAll<Results>(names, opened.status());
  Access access = Opened(std::move(opened));
  Results results;
  for (const ClaimName& name : names) results[name.uid] = CheckNames(name);
  // All first: a pod that has none left is not told what it has in between.
  for (const auto& [uid, result] : results) {
    if (!result.ok()) continue;
    access.state.Drop(uid);
    access.state.listeners_to_close.insert(uid);  // also where the state was lost
  }
  if (base::Status saved = access.SaveIfChanged(); !saved.ok())
    return ForAll<Results>(names, saved);
  for (const auto& [uid, result] : results) {
    if (result.ok()) RemoveSpec(uid);
  }
  // A pod's end waits for no agent.
  const base::Status told = TellAgent(access, {now_ns, now_ns + kCallNs});
  if (!told.ok()) services_.warn(told.text());
  return results;
}

void ClaimPreparer::RemoveStraySpecs(const DriverState& state) const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(options_.cdi_folder, ignored)) {
    const std::string uid = ClaimInFileName(entry.path().filename());
    if (!uid.empty() && state.claims.count(uid) == 0) RemoveSpec(uid);
  }
}

base::Status ClaimPreparer::Restore() {
  const int64_t now_ns = MonotonicNow();
  base::Result<Access> opened = file_.Open(now_ns + kTurnNs);
  if (!opened) return opened.status();
  Access access = Opened(std::move(opened));
  base::Status first_error;
  for (const auto& [uid, claim] : access.state.claims) {
    base::Status written = WriteSpec(claim);
    if (!written.ok() && first_error.ok()) first_error = std::move(written);
  }
  if (access.knows_all) RemoveStraySpecs(access.state);
  access.state.pods_to_expect = access.state.Pods();
  if (base::Status saved = access.SaveIfChanged(); !saved.ok()) return saved;
  // What the agent does not take now, NotePods states again.
  last_told_ = TellAgent(access, {now_ns, now_ns + kTurnNs});
  refusals_ = 0;
  next_tell_ns_ = INT64_MIN;
  return first_error;
}

// New ones, and now and then all that wait: a look may have missed them, or come before a claim was
// reserved for them.
std::set<std::string> ClaimPreparer::PodsToLookFor(const std::set<std::string>& all,
                                                   const std::set<std::string>& waiting,
                                                   int64_t now_ns) {
  std::set<std::string> sought = Without(all, known_pods_);
  if (!waiting.empty() && now_ns >= next_search_ns_) {
    next_search_ns_ = now_ns + kSearchNs;
    sought.insert(waiting.begin(), waiting.end());
  }
  return sought;
}

void ClaimPreparer::WarnOfWaiting(const std::set<std::string>& waiting, int64_t now_ns) {
  std::erase_if(waiting_since_ns_, [&](const auto& one) { return waiting.count(one.first) == 0; });
  for (const std::string& pod : waiting) {
    const int64_t since_ns = waiting_since_ns_.try_emplace(pod, now_ns).first->second;
    if (now_ns - since_ns < kLongWaitNs || now_ns < next_warning_ns_) continue;
    next_warning_ns_ = now_ns + kWarningNs;
    services_.warn("pod " + pod + " waits at the socket of a claim that is not reserved for it");
  }
}

// None, if nothing points to a change of their pods. A new pod may have joined any claim but those
// that name it, also if kubelet has told of it by another claim.
ClaimPreparer::Look ClaimPreparer::RecordsToLookAt(const DriverState& state,
                                                   const std::set<std::string>& pods,
                                                   const std::set<std::string>& sought,
                                                   int64_t now_ns) {
  const bool is_time = now_ns >= next_look_ns_;
  if (is_time) next_look_ns_ = now_ns + kLookNs;
  Look look;
  for (const auto& [uid, record] : state.claims) {
    const std::set<std::string> own(record.pods.begin(), record.pods.end());
    const bool has_lost_one = own.size() > 1 && !Without(own, pods).empty();
    if ((is_time && has_lost_one) || !Without(sought, own).empty())
      look.records.emplace(uid, record);
  }
  return look;
}

void ClaimPreparer::LookAt(Look& look, int64_t until_ns) {
  std::set<std::string> unusable;
  for (const auto& [uid, record] : look.records) {
    const auto claim =
        look.claims.emplace(uid, services_.get_claim(record.name, until_ns)).first->second;
    if (claim || claim.error().code == ENOENT) continue;
    if (claim.error().code != kUnusableClaim) {
      look.status = claim.status();
      continue;
    }
    unusable.insert(uid);
    if (unusable_claims_.count(uid) == 0)
      services_.warn("claim " + record.name.name_space + "/" + record.name.name +
                     " keeps the pods that it had: " + claim.text());
  }
  if (!look.records.empty()) unusable_claims_ = std::move(unusable);
}

// What a call of kubelet's has changed meanwhile is newer, and a new allocation is kubelet's to
// prepare. A pod that was deleted by force keeps its part while the agent sees it: it still runs.
bool ClaimPreparer::TakePods(const Look& look, const std::set<std::string>& pods,
                             DriverState& state) {
  bool is_whole = true;
  for (const auto& [uid, claim] : look.claims) {
    const auto record = state.claims.find(uid);
    const bool is_there = record != state.claims.end();
    if (is_there && record->second != look.records.at(uid)) is_whole = false;
    if (!claim || !is_there || record->second != look.records.at(uid)) continue;
    if (claim->name.uid != uid || !IsSameAllocation(record->second, *claim)) continue;
    ClaimRecord changed = record->second;
    changed.pods = claim->pods;
    const std::set<std::string> reserved(claim->pods.begin(), claim->pods.end());
    for (const std::string& pod : record->second.pods) {
      if (reserved.count(pod) == 0 && pods.count(pod) > 0) changed.pods.push_back(pod);
    }
    if (changed != record->second) state.Take(std::move(changed));
  }
  return is_whole;
}

base::Status ClaimPreparer::NotePods(const std::set<std::string>& pods, int64_t now_ns,
                                     const std::set<std::string>& waiting) {
  const int64_t from_ns = MonotonicNow(), until_ns = from_ns + kTurnNs;
  WarnOfWaiting(waiting, now_ns);
  std::set<std::string> all = pods;
  all.insert(waiting.begin(), waiting.end());
  const std::set<std::string> sought = PodsToLookFor(all, waiting, now_ns);
  known_pods_.clear();  // unless all goes well they are looked for again
  Look look;
  {
    base::Result<Access> opened = file_.Open(until_ns);
    if (!opened) return opened.status();
    const Access access = Opened(std::move(opened));
    look = RecordsToLookAt(access.state, all, sought, now_ns);
    const bool has_news = !access.state.pods_to_expect.empty() ||
                          !access.state.pods_to_forget.empty() ||
                          !access.state.listeners_to_close.empty();
    if (look.records.empty() && access.damage.empty()) known_pods_ = all;
    if (look.records.empty() && (!has_news || now_ns < next_tell_ns_))
      return has_news ? last_told_ : base::Ok();
  }
  LookAt(look, until_ns);
  base::Result<Access> opened = file_.Open(until_ns);
  if (!opened) return opened.status();
  Access access = Opened(std::move(opened));
  const bool is_whole = TakePods(look, all, access.state) && access.damage.empty();
  if (base::Status saved = access.SaveIfChanged(); !saved.ok()) return saved;
  if (is_whole && look.status.ok()) known_pods_ = std::move(all);
  last_told_ = TellAgent(access, {from_ns, until_ns});
  refusals_ = last_told_.ok() ? 0 : std::min(refusals_ + 1, kMostDoublings);
  next_tell_ns_ = refusals_ == 0 ? INT64_MIN : now_ns + (kSecond << refusals_) / 2;
  return last_told_.ok() ? look.status : last_told_;
}

}  // namespace spillway::kubernetes
