#include "deploy/kubernetes/driver_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

constexpr int kSchema = 1;
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

json JsonOf(const ClaimRecord& claim) {
  json devices = json::array();
  for (const PreparedDevice& device : claim.devices)
    devices.push_back({{"request", device.request},
                       {"pool", device.pool},
                       {"device", device.device},
                       {"share", device.share_id},
                       {"gpu", device.gpu_uuid},
                       {"terms", JsonOf(device.terms)}});
  return {{"namespace", claim.name.name_space},
          {"name", claim.name.name},
          {"pods", claim.pods},
          {"devices", devices}};
}

ClaimRecord ClaimIn(const std::string& uid, const json& object) {
  ClaimRecord claim{.name = {object.at("namespace"), object.at("name"), uid},
                    .pods = object.at("pods").get<std::vector<std::string>>()};
  for (const json& device : object.at("devices"))
    claim.devices.push_back({.request = device.at("request"),
                             .pool = device.at("pool"),
                             .device = device.at("device"),
                             .share_id = device.at("share"),
                             .gpu_uuid = device.at("gpu"),
                             .terms = TermsIn(device.at("terms"))});
  return claim;
}

base::UniqueFd Lock(const std::string& path) {
  base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  while (file && flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return {};
  }
  return file;
}

}  // namespace

std::set<std::string> DriverState::Pods() const {
  std::set<std::string> pods;
  for (const auto& [uid, claim] : claims) pods.insert(claim.pods.begin(), claim.pods.end());
  return pods;
}

std::string Written(const DriverState& state) {
  json claims = json::object();
  for (const auto& [uid, claim] : state.claims) claims[uid] = JsonOf(claim);
  return json({{"schema", kSchema}, {"claims", claims}, {"pods_to_forget", state.pods_to_forget}})
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
    state.pods_to_forget = document.at("pods_to_forget").get<std::set<std::string>>();
    return state;
  } catch (const json::exception& wrong) {
    return base::Error{"the state is damaged", wrong.what()};
  }
}

StateFile::StateFile(const std::string& folder)
    : path_(folder + "/state.json"), lock_path_(folder + "/state.lock") {}

base::Status StateFile::Access::Save() const {
  return base::ReplaceFile(path_, Written(state), {.sync = true});
}

base::Result<StateFile::Access> StateFile::Open() const {
  base::UniqueFd lock = Lock(lock_path_);
  if (!lock) return base::ErrnoError("cannot lock " + lock_path_);
  Access access(path_, std::move(lock));
  const base::Result<std::string> text = base::ReadFile(path_, {.most_bytes = kMostStateBytes});
  if (!text && text.error().code == ENOENT) return access;
  if (!text) return text.status();
  base::Result<DriverState> state = ReadState(*text);
  if (state) {
    access.state = *std::move(state);
    return access;
  }
  access.damage = path_ + ": " + state.text();
  if (rename(path_.c_str(), (path_ + ".damaged").c_str()) != 0)
    return base::ErrnoError("cannot put aside " + path_);
  return access;
}

}  // namespace spillway::kubernetes
