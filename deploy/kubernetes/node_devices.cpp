#include "deploy/kubernetes/node_devices.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

// The value in a line "Bus Location: \t 0000:81:00.0".
std::string ValueOf(const std::string& text, std::string_view name) {
  const size_t begin = text.find(name);
  if (begin == std::string::npos) return "";
  size_t at = begin + name.size();
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  size_t end = at;
  while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0) ++end;
  return text.substr(at, end - at);
}

}  // namespace

std::string DeviceNameOf(const std::string& uuid) {
  std::string name;
  for (const char c : uuid)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '-';
  return name;
}

base::Result<NodeStatus> ParseStatus(std::string_view text) {
  try {
    const json document = json::parse(text);
    NodeStatus status;
    status.draining = document.at("draining").get<bool>();
    status.agent_instance = document.at("agent_instance").dump();
    for (const json& device : document.at("devices")) {
      if (device.at("found").get<bool>())
        status.gpus.push_back({.uuid = device.at("uuid").get<std::string>(),
                               .model = device.at("model").get<std::string>(),
                               .memory_bytes = device.at("memory_bytes").get<int64_t>()});
    }
    for (const json& job : document.at("jobs")) {
      if (job.contains("pod_uid")) status.pods.insert(job["pod_uid"].get<std::string>());
    }
    for (const json& pod : document.value("waiting_pods", json::array()))
      status.waiting_pods.insert(pod.get<std::string>());
    return status;
  } catch (const json::exception& wrong) {
    return base::Error{"the agent's status is not understood", wrong.what(),
                       "are the agent and the driver of one version?"};
  }
}

std::map<std::string, std::string> PciBusIds(const std::string& folder) {
  std::map<std::string, std::string> ids;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const auto text = base::ReadFile((entry.path() / "information").string()).optional();
    if (!text) continue;
    const std::string uuid = ValueOf(*text, "GPU UUID:");
    std::string bus_id = ValueOf(*text, "Bus Location:");
    if (!uuid.empty() && !bus_id.empty()) ids[uuid] = std::move(bus_id);
  }
  return ids;
}

}  // namespace spillway::kubernetes
