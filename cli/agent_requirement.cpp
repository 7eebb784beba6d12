#include "cli/agent_requirement.h"

#include <algorithm>
#include <cctype>

#include "cli/agent_client.h"
#include "cli/failure.h"

namespace spillway::cli {
namespace {

// Makes "GPU-0100-AB" and "gpu-0100ab" equal.
std::string Plain(std::string_view uuid) {
  std::string plain;
  for (const char c : uuid) {
    if (c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

std::string StatusOf(const std::string& address) {
  protocol::Ask ask;
  ask.question = protocol::Question::kStatus;
  ask.form = protocol::Form::kJson;
  try {
    return AgentClient(address).Ask(ask);
  } catch (const Failure& failure) {
    throw Failure(
        kExitRefused, "the agent is required, and " + failure.problem(), failure.why(),
        "start it (spillwayd); where jobs may run without one, leave out --agent=required");
  }
}

}  // namespace

bool NamesDevice(const std::string& status, const std::string& uuid) {
  constexpr std::string_view key = "\"uuid\": \"";
  for (size_t at = 0; (at = status.find(key, at)) != status.npos;) {
    at += key.size();
    const size_t end = std::min(status.find('"', at), status.size());
    if (Plain(std::string_view(status).substr(at, end - at)) == Plain(uuid)) return true;
  }
  return false;
}

void CheckAgentTakes(const std::string& address, const std::vector<std::string>& device_uuids) {
  const std::string status = StatusOf(address);
  const bool is_known =
      device_uuids.empty() ||
      std::any_of(device_uuids.begin(), device_uuids.end(),
                  [&](const auto& uuid) { return uuid.empty() || NamesDevice(status, uuid); });
  if (is_known) return;
  throw Failure(kExitRefused, "the agent is required, and does not know this device",
                "the agent at " + address + " has no device " + device_uuids.front(),
                "see: spillway status; `uuid` of [[device]] in the agent's configuration must be "
                "the device's");
}

}  // namespace spillway::cli
