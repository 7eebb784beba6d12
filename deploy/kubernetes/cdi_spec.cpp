#include "deploy/kubernetes/cdi_spec.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/environment.h"
#include "base/framework_settings.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::ordered_json;

constexpr char kVersion[] = "0.5.0", kVendor[] = "k8s.spillway.dev";
constexpr char kFileBegin[] = "k8s.spillway.dev-claim_", kFileEnd[] = ".json";
constexpr char kLibraryInside[] = "/usr/lib/spillway/libspillway.so";
constexpr char kSocketsInside[] = "/run/spillway";

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string NameIn(const std::string& path) { return path.substr(path.rfind('/') + 1); }

ordered_json Mount(const std::string& host, const std::string& inside,
                   const std::vector<std::string>& options) {
  return {{"hostPath", host}, {"containerPath", inside}, {"options", options}};
}

ordered_json EnvironmentOf(const Injection& injection) {
  ordered_json variables = ordered_json::array();
  const auto set = [&](const std::string& name, const std::string& value) {
    variables.push_back(name + "=" + value);
  };
  set("LD_PRELOAD", kLibraryInside);
  set(environment::kAgent, std::string(kSocketsInside) + "/" + NameIn(injection.job_socket));
  set(environment::kAgentRequired, "1");
  if (!injection.set_frameworks) return variables;
  for (const char* const name : frameworks::kPyTorchNames) set(name, frameworks::kPerTensor);
  for (const frameworks::Setting& other : frameworks::kOthers) set(other.name, other.value);
  return variables;
}

ordered_json EditsOf(const Injection& injection) {
  return {{"env", EnvironmentOf(injection)},
          {"mounts",
           {Mount(injection.library, kLibraryInside, {"ro", "nosuid", "nodev", "bind"}),
            Mount(FolderOf(injection.job_socket), kSocketsInside,
                  {"ro", "nosuid", "nodev", "noexec", "bind"})}}};
}

std::string Spec(const char* kind, const std::set<std::string>& devices,
                 const Injection& injection) {
  ordered_json list = ordered_json::array();
  for (const std::string& name : devices)
    list.push_back({{"name", name}, {"containerEdits", EditsOf(injection)}});
  const ordered_json spec = {
      {"cdiVersion", kVersion}, {"kind", std::string(kVendor) + "/" + kind}, {"devices", list}};
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
  return Spec("claim", devices, injection);
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
