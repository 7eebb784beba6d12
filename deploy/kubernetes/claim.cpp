#include "deploy/kubernetes/claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "deploy/kubernetes/quantity.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

// Null where it is missing or of another type: the API server has checked types already.
const json& Member(const json& object, const char* name) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

std::string TextOf(const json& object, const char* name) {
  const json& value = Member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

struct Config {
  bool is_of_class;
  std::vector<std::string> requests;  // none: all
  MemoryConfig memory;
};

// A configuration for "gpu" counts for the subrequest "gpu/large", too.
bool Concerns(const Config& config, const std::string& request) {
  return config.requests.empty() ||
         std::any_of(config.requests.begin(), config.requests.end(), [&](const std::string& name) {
           return request == name || request.starts_with(name + "/");
         });
}

base::Result<std::vector<Config>> ConfigsIn(const json& entries) {
  std::vector<Config> configs;
  for (const json& entry : entries) {
    const json& opaque = Member(entry, "opaque");
    if (TextOf(opaque, "driver") != kDriver) continue;
    base::Result<MemoryConfig> memory = ParseMemoryConfig(Member(opaque, "parameters").dump());
    const bool is_of_class = TextOf(entry, "source") == "FromClass";
    if (!memory)
      return base::Status(memory.status())
          .Annotate(is_of_class ? "the device class's configuration" : "the claim's configuration");
    Config config{is_of_class, {}, *memory};
    for (const json& request : Member(entry, "requests")) {
      if (request.is_string()) config.requests.push_back(request.get<std::string>());
    }
    configs.push_back(std::move(config));
  }
  return configs;
}

base::Result<std::optional<int64_t>> CountedBytes(const json& result) {
  const json& consumed = Member(result, "consumedCapacity");
  for (const std::string& name : {std::string(kMemory), std::string(kDriver) + "/" + kMemory}) {
    const json& value = Member(consumed, name.c_str());
    if (!value.is_string()) continue;
    const base::Result<int64_t> bytes = ParseQuantity(value.get_ref<const std::string&>());
    if (!bytes) return base::Status(bytes.status()).Annotate("consumedCapacity");
    return std::optional(*bytes);
  }
  return std::optional<int64_t>();
}

base::Result<AllocatedDevice> DeviceIn(const json& result, const std::vector<Config>& configs) {
  // Such a result is beside the scheduler's count, for monitoring a device that others use.
  if (Member(result, "adminAccess") == true)
    return base::Error{"request " + TextOf(result, "request") + " has adminAccess",
                       "this driver gives memory, and nothing of a device without a count",
                       "leave adminAccess out; `spillway status` on the node shows its devices"};
  AllocatedDevice device{.request = TextOf(result, "request"),
                         .pool = TextOf(result, "pool"),
                         .device = TextOf(result, "device"),
                         .share_id = TextOf(result, "shareID")};
  const base::Result<std::optional<int64_t>> counted_bytes = CountedBytes(result);
  if (!counted_bytes) return counted_bytes.status();
  device.counted_bytes = *counted_bytes;
  for (const Config& config : configs) {
    if (!Concerns(config, device.request)) continue;
    (config.is_of_class ? device.of_class : device.of_claim).push_back(config.memory);
  }
  return device;
}

std::vector<std::string> PodsIn(const json& consumers) {
  std::vector<std::string> pods;
  for (const json& consumer : consumers) {
    if (TextOf(consumer, "resource") == "pods" && TextOf(consumer, "apiGroup").empty())
      pods.push_back(TextOf(consumer, "uid"));
  }
  std::sort(pods.begin(), pods.end());
  return pods;
}

}  // namespace

base::Result<Claim> ParseClaim(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return base::Error{"the API server's claim is no JSON object"};
  const json& metadata = Member(document, "metadata");
  const json& status = Member(document, "status");
  const json& devices = Member(Member(status, "allocation"), "devices");
  Claim claim;
  claim.name = {TextOf(metadata, "namespace"), TextOf(metadata, "name"), TextOf(metadata, "uid")};
  if (!devices.is_object()) return base::Error{"the claim is not allocated"};
  const base::Result<std::vector<Config>> configs = ConfigsIn(Member(devices, "config"));
  if (!configs) return configs.status();
  for (const json& result : Member(devices, "results")) {
    if (TextOf(result, "driver") != kDriver) continue;
    base::Result<AllocatedDevice> device = DeviceIn(result, *configs);
    if (!device) return device.status();
    claim.devices.push_back(*std::move(device));
  }
  claim.pods = PodsIn(Member(status, "reservedFor"));
  if (claim.pods.empty())
    return base::Error{"the claim is reserved for no pod", "a budget is bound to a pod's uid"};
  return claim;
}

}  // namespace spillway::kubernetes
