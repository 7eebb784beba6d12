#include "deploy/kubernetes/cdi_spec.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/container_edits.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::ordered_json;

constexpr char kVendor[] = "k8s.spillway.dev";
constexpr char kFileBegin[] = "k8s.spillway.dev-claim_", kFileEnd[] = ".json";

ordered_json EditsOf(const Injection& injection) {
  const base::ContainerEdits edits = base::EditsFor({.library = injection.library,
                                                     .job_socket = injection.job_socket,
                                                     .sets_frameworks = injection.set_frameworks});
  ordered_json mounts = ordered_json::array();
  for (const base::ContainerMount& mount : edits.mounts)
    mounts.push_back(
        {{"hostPath", mount.host}, {"containerPath", mount.inside}, {"options", mount.options}});
  return {{"env", edits.variables}, {"mounts", mounts}};
}

Injection With(Injection injection, const std::string& job_socket) {
  if (!job_socket.empty()) injection.job_socket = job_socket;
  return injection;
}

std::string Spec(const char* kind, const std::set<std::string>& devices,
                 const Injection& injection) {
  ordered_json list = ordered_json::array();
  for (const std::string& name : devices)
    list.push_back({{"name", name}, {"containerEdits", EditsOf(injection)}});
  const ordered_json spec = {{"cdiVersion", base::kCdiVersion},
                             {"kind", std::string(kVendor) + "/" + kind},
                             {"devices", list}};
  return spec.dump(1) + "\n";
}

std::string DeviceInClaim(const std::string& uid, const std::string& device) {
  return uid + "-" + device;
}

}  // namespace

std::string ClaimSpec(const ClaimRecord& claim, const Injection& injection) {
  std::set<std::string> devices;
  for (const PreparedDevice& device : claim.devices)
    devices.insert(DeviceInClaim(claim.name.uid, device.device));
  return Spec("claim", devices, With(injection, claim.job_socket));
}

std::string ClaimSpecFileOf(const std::string& uid) { return kFileBegin + uid + kFileEnd; }

std::string ClaimInFileName(const std::string& file) {
  const size_t begin = std::string_view(kFileBegin).size(), end = std::string_view(kFileEnd).size();
  if (!file.starts_with(kFileBegin) || !file.ends_with(kFileEnd)) return "";
  return file.substr(begin, file.size() - begin - end);
}

std::string ClaimDeviceOf(const std::string& uid, const std::string& device) {
  return std::string(kVendor) + "/claim=" + DeviceInClaim(uid, device);
}

std::string SlotSpec(const Injection& injection) { return Spec("slot", {"gpu"}, injection); }

}  // namespace spillway::kubernetes
