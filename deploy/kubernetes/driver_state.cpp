#include "deploy/kubernetes/driver_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/file.h"
#include "base/pause.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

constexpr int kSchema = 1;
constexpr char kDamaged[] = ".damaged";
constexpr int kMostDamaged = 10;
constexpr int64_t kPauseNs = 10'000'000;
constexpr size_t kMostStateBytes = size_t{64} << 20;

json JsonOf(const MemoryTerms& terms) {
  json object = {{"guaranteed", terms.guaranteed_bytes}, {"limit", terms.limit_bytes}};
  if (terms.weight) object["weight"] = *terms.weight;
  if (terms.priority) object["priority"] = *terms.priority;
  return object;
}

MemoryTerms TermsIn(const json& object) {
  MemoryTerms terms{.guaranteed_bytes = object.at("guaranteed").get<int64_t>(),
                    .limit_bytes = object.at("limit").get<int64_t>()};
  if (object.contains("weight")) terms.weight = object["weight"].get<int32_t>();
  if (object.contains("priority")) terms.priority = object["priority"].get<int32_t>();
  return terms;
}

json JsonOf(const std::optional<int64_t>& bytes) { return bytes ? json(*bytes) : json(); }

json JsonOf(const ClaimRecord& claim) {
  json devices = json::array();
  for (const PreparedDevice& device : claim.devices)
    devices.push_back({{"request", device.request},
                       {"pool", device.pool},
                       {"device", device.device},
                       {"share", device.share_id},
                       {"gpu", device.gpu_uuid},
                       {"terms", JsonOf(device.terms)},
                       {"counted", device.counted_bytes},
                       {"class_limit", JsonOf(device.class_limit_bytes)}});
  return {{"namespace", claim.name.name_space},
          {"name", claim.name.name},
          {"pods", claim.pods},
          {"job_socket", claim.job_socket},
          {"devices", devices}};
}

PreparedDevice DeviceIn(const json& object) {
  PreparedDevice device{.request = object.at("request"),
                        .pool = object.at("pool"),
                        .device = object.at("device"),
                        .share_id = object.at("share"),
                        .gpu_uuid = object.at("gpu"),
                        .terms = TermsIn(object.at("terms"))};
  // Earlier drivers kept the terms alone. A limit above the guaranteed memory is the class's then,
  // which no number of claims passes.
  const MemoryTerms& terms = device.terms;
  device.counted_bytes = object.value("counted", terms.guaranteed_bytes);
  if (!object.contains("class_limit") && terms.limit_bytes > terms.guaranteed_bytes)
    device.class_limit_bytes = terms.limit_bytes;
  const json class_limit = object.value("class_limit", json());
  if (!class_limit.is_null()) device.class_limit_bytes = class_limit.get<int64_t>();
  return device;
}

ClaimRecord ClaimIn(const std::string& uid, const json& object) {
  ClaimRecord claim{.name = {object.at("namespace"), object.at("name"), uid},
                    .pods = object.at("pods").get<std::vector<std::string>>(),
                    .job_socket = object.value("job_socket", "")};
  for (const json& device : object.at("devices")) claim.devices.push_back(DeviceIn(device));
  return claim;
}

}  // namespace

std::set<std::string> DriverState::Pods() const {
  std::set<std::string> pods;
  for (const auto& [uid, claim] : claims) pods.insert(claim.pods.begin(), claim.pods.end());
  return pods;
}

void DriverState::Note(const std::vector<std::string>& changed) {
  const std::set<std::string> left = Pods();
  for (const std::string& pod : changed)
    (left.count(pod) > 0 ? pods_to_expect : pods_to_forget).insert(pod);
}

void DriverState::Take(ClaimRecord claim) {
  Drop(claim.name.uid);
  const std::vector<std::string> pods = claim.pods;
  listeners_to_close.erase(claim.name.uid);
  claims.insert_or_assign(claim.name.uid, std::move(claim));
  Note(pods);
}

void DriverState::Drop(const std::string& uid) {
  const auto claim = claims.extract(uid);
  if (!claim) return;
  listeners_to_close.insert(uid);
  Note(claim.mapped().pods);
}

bool IsSameAllocation(const ClaimRecord& record, const Claim& claim) {
  return std::equal(record.devices.begin(), record.devices.end(), claim.devices.begin(),
                    claim.devices.end(), [](const PreparedDevice& a, const AllocatedDevice& b) {
                      return a.request == b.request && a.pool == b.pool && a.device == b.device &&
                             a.share_id == b.share_id;
                    });
}

std::string Written(const DriverState& state) {
  json claims = json::object();
  for (const auto& [uid, claim] : state.claims) claims[uid] = JsonOf(claim);
  return json({{"schema", kSchema},
               {"claims", claims},
               {"pods_to_expect", state.pods_to_expect},
               {"pods_to_forget", state.pods_to_forget},
               {"listeners_to_close", state.listeners_to_close}})
      .dump(1);
}

base::Result<DriverState> ReadState(std::string_view text) {
  try {
    const json document = json::parse(text);
    if (document.at("schema") != kSchema)
      return base::Error{"the state is of another version of the driver"};
    DriverState state;
    for (const auto& [uid, claim] : document.at("claims").items())
      state.claims[uid] = ClaimIn(uid, claim);
    // Earlier drivers kept no pods_to_expect: Restore states all pods.
    state.pods_to_expect = document.value("pods_to_expect", std::set<std::string>());
    state.listeners_to_close = document.value("listeners_to_close", std::set<std::string>());
    state.pods_to_forget = document.value("pods_to_forget", std::set<std::string>());
    return state;
  } catch (const json::exception& wrong) {
    return base::Error{"the state is damaged", wrong.what()};
  }
}

StateFile::StateFile(const std::string& folder)
    : path_(folder + "/state.json"), lock_path_(folder + "/state.lock") {}

base::Status StateFile::Access::SaveIfChanged() {
  if (state == saved_) return base::Ok();
  base::Status saved = base::ReplaceFile(path_, Written(state), {.sync = true});
  if (saved.ok()) saved_ = state;
  return saved;
}

base::UniqueFd StateFile::Lock(int64_t deadline_ns) const {
  base::UniqueFd file(open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  while (file && flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR && errno != EWOULDBLOCK) return {};
    if (base::NowNs(CLOCK_MONOTONIC) >= deadline_ns) return errno = EWOULDBLOCK, base::UniqueFd();
    base::Pause(kPauseNs);
  }
  return file;
}

base::Status StateFile::PutAside() const {
  for (int i = 0; i < kMostDamaged; ++i) {
    const std::string aside = path_ + kDamaged + (i == 0 ? "" : "." + std::to_string(i));
    if (renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, aside.c_str(), RENAME_NOREPLACE) == 0)
      return base::Ok();
    if (errno != EEXIST) break;
  }
  return base::ErrnoError("cannot put aside " + path_, "remove older damaged files beside it");
}

base::Result<StateFile::Access> StateFile::Open(int64_t deadline_ns) const {
  base::UniqueFd lock = Lock(deadline_ns);
  if (!lock && errno == EWOULDBLOCK)
    return base::Error{"the driver is still busy with other claims", "", "kubelet asks again"};
  if (!lock) return base::ErrnoError("cannot lock " + lock_path_);
  Access access(path_, std::move(lock));
  const base::Result<std::string> text = base::ReadFile(path_, {.most_bytes = kMostStateBytes});
  if (!text && text.error().code == ENOENT) return access;
  if (!text) return text.status();
  base::Result<DriverState> state = ReadState(*text);
  if (state) {
    access.saved_ = access.state = *std::move(state);
    access.knows_all = faccessat(AT_FDCWD, (path_ + kDamaged).c_str(), F_OK, 0) != 0;
    return access;
  }
  access.damage = path_ + ": " + state.text();
  if (base::Status aside = PutAside(); !aside.ok()) return aside;
  return access;
}

}  // namespace spillway::kubernetes
