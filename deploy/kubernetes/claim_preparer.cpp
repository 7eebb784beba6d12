#include "deploy/kubernetes/claim_preparer.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "deploy/kubernetes/pod_terms.h"
#include "deploy/kubernetes/resource_slice.h"

namespace spillway::kubernetes {
namespace {

constexpr char kNvidiaKind[] = "nvidia.com/gpu=";

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
                          .terms = *terms};
  }
  return base::Error{"the agent knows no " + device.device, "",
                     "see: spillway status, on this node"};
}

base::Result<ClaimRecord> ClaimPreparer::Resolve(const ClaimName& name) const {
  base::Result<Claim> claim = services_.get_claim(name);
  if (!claim) return claim.status();
  if (claim->name.uid != name.uid)
    return base::Error{"the claim of this name is another one by now, " + claim->name.uid};
  if (claim->devices.empty()) return base::Error{"the claim has no device of this driver"};
  ClaimRecord record{.name = name, .devices = {}, .pods = claim->pods};
  for (const AllocatedDevice& device : claim->devices) {
    base::Result<PreparedDevice> prepared = Resolve(device);
    if (!prepared) return base::Status(prepared.status()).Annotate("request " + device.request);
    record.devices.push_back(*std::move(prepared));
  }
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

base::Status ClaimPreparer::Expect(const DriverState& state, const std::vector<std::string>& pods) {
  for (const std::string& pod : pods) {
    const base::Result<MemoryTerms> terms = TermsOfPod(state, pod);
    if (!terms) return terms.status();
    base::Status expected = services_.expect_pod(pod, *terms);
    if (!expected.ok()) return expected;
  }
  return base::Ok();
}

base::Status ClaimPreparer::Finish(const ClaimRecord& claim, const DriverState& state) {
  base::Status written = WriteSpec(claim);
  return written.ok() ? Expect(state, claim.pods) : written;
}

// Takes the claim out of the state. Its pods have what other claims leave them.
void ClaimPreparer::Release(DriverState& state, const std::string& uid) {
  const auto claim = state.claims.extract(uid);
  if (!claim) return;
  const std::set<std::string> left = state.Pods();
  for (const std::string& pod : claim.mapped().pods) {
    if (left.count(pod) == 0) {
      state.pods_to_forget.insert(pod);
    } else if (base::Status expected = Expect(state, {pod}); !expected.ok()) {
      services_.warn("pod " + pod + " keeps its former terms: " + expected.text());
    }
  }
}

// Those that the agent does not forget now are tried again.
void ClaimPreparer::ForgetPods(Access& access) {
  DriverState& state = access.state;
  const size_t before = state.pods_to_forget.size();
  const std::set<std::string> used = state.Pods();
  for (auto pod = state.pods_to_forget.begin(); pod != state.pods_to_forget.end();) {
    if (used.count(*pod) == 0) {
      const base::Status forgotten = services_.forget_pod(*pod);
      if (!forgotten.ok()) {
        services_.warn("the agent has not forgotten pod " + *pod + " yet: " + forgotten.text());
        break;
      }
    }
    pod = state.pods_to_forget.erase(pod);
  }
  if (state.pods_to_forget.size() == before) return;
  const base::Status saved = access.Save();
  if (!saved.ok()) services_.warn(saved.text());
}

StateFile::Access ClaimPreparer::Opened(base::Result<Access> opened) const {
  if (!opened->damage.empty())
    services_.warn(opened->damage + "; it is put aside, and the driver begins anew");
  return *std::move(opened);
}

ClaimPreparer::Prepared ClaimPreparer::Prepare(const std::vector<ClaimName>& names) {
  Prepared prepared;
  base::Result<Access> opened = file_.Open();
  if (!opened) {
    for (const ClaimName& name : names) prepared.emplace(name.uid, opened.status());
    return prepared;
  }
  Access access = Opened(std::move(opened));
  // All of a pod's claims come in one request, and its GPUs are alike only with the last of them.
  std::set<std::string> added;
  const auto fail = [&](const std::string& uid, const base::Status& why) {
    prepared.insert_or_assign(uid, why);
    if (added.erase(uid) > 0) Release(access.state, uid);
  };
  for (const ClaimName& name : names) {
    if (base::Status valid = CheckNames(name); !valid.ok()) {
      prepared.insert_or_assign(name.uid, valid);
      continue;
    }
    if (access.state.claims.count(name.uid) > 0) continue;
    base::Result<ClaimRecord> record = Resolve(name);
    if (!record) {
      fail(name.uid, record.status());
      continue;
    }
    access.state.claims.insert_or_assign(name.uid, *std::move(record));
    added.insert(name.uid);
  }
  if (base::Status saved = added.empty() ? base::Ok() : access.Save(); !saved.ok()) {
    for (const ClaimName& name : names) prepared.insert_or_assign(name.uid, saved);
    return prepared;
  }
  for (const ClaimName& name : names) {
    const auto claim = access.state.claims.find(name.uid);
    if (claim == access.state.claims.end()) continue;
    const ClaimRecord record = claim->second;
    if (base::Status finished = Finish(record, access.state); !finished.ok()) {
      fail(name.uid, finished);
      RemoveSpec(name.uid);
      if (base::Status saved = access.Save(); !saved.ok()) services_.warn(saved.text());
      continue;
    }
    prepared.insert_or_assign(name.uid, GivenBy(record));
  }
  ForgetPods(access);
  return prepared;
}

std::map<std::string, base::Status> ClaimPreparer::Unprepare(const std::vector<ClaimName>& names) {
  std::map<std::string, base::Status> results;
  base::Result<Access> opened = file_.Open();
  if (!opened) {
    for (const ClaimName& name : names) results[name.uid] = opened.status();
    return results;
  }
  Access access = Opened(std::move(opened));
  bool is_changed = false;
  for (const ClaimName& name : names) {
    results[name.uid] = CheckNames(name);
    if (!results[name.uid].ok() || access.state.claims.count(name.uid) == 0) continue;
    Release(access.state, name.uid);
    is_changed = true;
  }
  if (base::Status saved = is_changed ? access.Save() : base::Ok(); !saved.ok()) {
    for (auto& [uid, result] : results) result = saved;
    return results;
  }
  for (const auto& [uid, result] : results) {
    if (result.ok()) RemoveSpec(uid);
  }
  ForgetPods(access);
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
  base::Result<Access> opened = file_.Open();
  if (!opened) return opened.status();
  Access access = Opened(std::move(opened));
  base::Status first_error;
  const auto note = [&](base::Status status) {
    if (!status.ok() && first_error.ok()) first_error = std::move(status);
  };
  for (const auto& [uid, claim] : access.state.claims) note(WriteSpec(claim));
  for (const std::string& pod : access.state.Pods()) note(Expect(access.state, {pod}));
  if (access.damage.empty()) RemoveStraySpecs(access.state);
  ForgetPods(access);
  return first_error;
}

base::Status ClaimPreparer::NotePods(const std::set<std::string>& pods) {
  base::Result<Access> opened = file_.Open();
  if (!opened) return opened.status();
  Access access = Opened(std::move(opened));
  if (!access.state.pods_to_forget.empty()) ForgetPods(access);
  const std::set<std::string> ours = access.state.Pods();
  std::set<std::string> strangers;
  std::set_difference(pods.begin(), pods.end(), ours.begin(), ours.end(),
                      std::inserter(strangers, strangers.end()));
  const bool has_new = !std::includes(known_strangers_.begin(), known_strangers_.end(),
                                      strangers.begin(), strangers.end());
  if (!has_new || access.state.claims.empty()) {
    known_strangers_ = strangers;
    return base::Ok();
  }
  std::set<std::string> changed;
  for (auto& [uid, record] : access.state.claims) {
    const base::Result<Claim> claim = services_.get_claim(record.name);
    if (!claim && claim.error().code != ENOENT) return claim.status();
    if (!claim || claim->name.uid != uid || claim->pods == record.pods) continue;
    changed.insert(record.pods.begin(), record.pods.end());
    record.pods = claim->pods;
    changed.insert(record.pods.begin(), record.pods.end());
  }
  known_strangers_ = strangers;
  if (changed.empty()) return base::Ok();
  const std::set<std::string> left = access.state.Pods();
  std::vector<std::string> to_expect;
  for (const std::string& pod : changed) {
    if (left.count(pod) > 0) {
      to_expect.push_back(pod);
    } else {
      access.state.pods_to_forget.insert(pod);
    }
  }
  if (base::Status saved = access.Save(); !saved.ok()) return saved;
  base::Status expected = Expect(access.state, to_expect);
  ForgetPods(access);
  return expected;
}

}  // namespace spillway::kubernetes
