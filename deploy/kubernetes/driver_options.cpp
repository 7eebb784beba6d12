#include "deploy/kubernetes/driver_options.h"

#include <charconv>
#include <cstdlib>

#include "base/options/option_help.h"
#include "base/options/option_parser.h"
#include "base/path.h"

namespace spillway::kubernetes {
namespace {

using base::Kind;
using base::kNoValue;
using base::Value;

struct Line {
  DriverOptions options;
  std::string slots, gpus = "give", frameworks = "set", claims = "serve";
};

template <std::string DriverOptions::*kField>
constexpr base::OptionRow<Line> Text(base::Option option) {
  return {option, [](Line& line, const std::string& value) { line.options.*kField = value; }};
}
template <bool DriverOptions::*kField>
constexpr base::OptionRow<Line> Flag(base::Option option) {
  return {option, [](Line& line, const std::string&) { line.options.*kField = true; }};
}

constexpr base::OptionRow<Line> kRows[] = {
    Text<&DriverOptions::node>({"node", 'n', Value("NAME"),
                                "this node's name in Kubernetes (default: NODE_NAME in the "
                                "environment)"}),
    Text<&DriverOptions::agent_socket>({"socket", 's', Value("PATH", Kind::kFile),
                                        "the node agent's, on the host (default: "
                                        "/run/spillway/agent.sock)"}),
    Text<&DriverOptions::job_socket>({"job-socket", 0, Value("PATH", Kind::kFile),
                                      "[agent] job_socket of the node agent's configuration, on "
                                      "the host; containers get its folder, and nothing else of "
                                      "the agent's (default: /run/spillway/jobs/agent.sock)"}),
    Text<&DriverOptions::library>({"library", 'l', Value("FILE", Kind::kFile),
                                   "libspillway.so on the host, which containers get (default: "
                                   "/usr/lib/spillway/libspillway.so)"}),
    {{"gpus", 0, Value("WHO", Kind::kWords, "give leave"),
      "give: a claim's container gets the GPU too, as NVIDIA's container toolkit describes it "
      "(default). leave: another DRA driver gives it"},
     [](Line& line, const std::string& value) { line.gpus = value; }},
    {{"frameworks", 0, Value("HOW", Kind::kWords, "set keep"),
      "set: PyTorch, TensorFlow and JAX allocate each tensor by itself, whatever the image says "
      "(default). keep: their variables stay as they are"},
     [](Line& line, const std::string& value) { line.frameworks = value; }},
    {{"claims", 0, Value("HOW", Kind::kWords, "serve off"),
      "off: no DRA, only the device plugin; no API server is needed then"},
     [](Line& line, const std::string& value) { line.claims = value; }},
    {{"slots", 0, Value("N"),
      "also serve the device plugin spillway.dev/gpu-slot, with N slots of equal memory on each "
      "GPU"},
     [](Line& line, const std::string& value) { line.slots = value; }},
    Text<&DriverOptions::api_server>(
        {"api-server", 0, Value("URL"), "https://HOST:PORT (default: as kubelet tells a pod)"}),
    Text<&DriverOptions::token_file>({"token-file", 0, Value("FILE", Kind::kFile),
                                      "a bearer token, read anew for each request; with "
                                      "--api-server"}),
    Text<&DriverOptions::ca_file>({"ca-file", 0, Value("FILE", Kind::kFile),
                                   "the authority of the API server's certificate; with "
                                   "--api-server"}),
    Text<&DriverOptions::kubelet_folder>(
        {"kubelet", 0, Value("FOLDER", Kind::kFolder), "kubelet's (default: /var/lib/kubelet)"}),
    Text<&DriverOptions::cdi_folder>({"cdi", 0, Value("FOLDER", Kind::kFolder),
                                      "where the container runtime reads CDI specifications "
                                      "(default: /var/run/cdi)"}),
    Text<&DriverOptions::gpu_folder>({"gpu-facts", 0, Value("FOLDER", Kind::kFolder),
                                      "where NVIDIA's kernel module describes GPUs (default: "
                                      "/proc/driver/nvidia/gpus)"}),
    Text<&DriverOptions::instance>({"instance", 0, Value("NAME"),
                                    "in the sockets' names, so that an old and a new driver serve "
                                    "side by side during an update (default: POD_UID in the "
                                    "environment, or none)"}),
    Flag<&DriverOptions::probe>({"probe", 0, kNoValue,
                                 "ask the running driver of these options whether it answers, and "
                                 "end: the exit code is 0 or 1"}),
    Flag<&DriverOptions::version>({"version", 0, kNoValue, "print the version"}),
    Flag<&DriverOptions::help>(base::kHelpOption),
};

constexpr char kHelpBegin[] =
    R"(spillway-kubernetes - gives pods the device memory that their claims ask for

  spillway-kubernetes [--node NAME] [--slots N] [OPTION...]
  spillway-kubernetes --probe

Runs as root on each GPU node, beside the node agent (spillwayd), which keeps the budgets. It registers
with kubelet as the DRA driver spillway.dev, and publishes the node's device memory as a ResourceSlice.

)";

void SetFromEnvironment(std::string& value, const char* name) {
  const char* const set = std::getenv(name);
  if (value.empty() && set != nullptr) value = set;
}

base::Status TakeWord(const char* option, const std::string& word, const char* yes, const char* no,
                      bool& flag) {
  if (word != yes && word != no)
    return base::Error{std::string("--") + option + "=" + word + " is unknown", "",
                       std::string("there are ") + yes + " and " + no};
  flag = word == yes;
  return base::Ok();
}

base::Status TakeSlots(const std::string& text, int& slots) {
  constexpr int kMostSlots = 128;
  if (text.empty()) return base::Ok();
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, slots);
  if (error == std::errc() && last == end && slots >= 1 && slots <= kMostSlots) return base::Ok();
  return base::Error{"--slots=" + text + " is no number from 1 to " + std::to_string(kMostSlots)};
}

base::Status Check(const DriverOptions& options) {
  constexpr char kNames[] = "0123456789abcdefghijklmnopqrstuvwxyz-.";
  if (options.serves_claims && !options.probe && options.node.empty())
    return base::Error{"the node's name is missing", "", "say it with --node or NODE_NAME"};
  for (const std::string& name : {options.node, options.instance}) {
    if (name.find_first_not_of(kNames) != std::string::npos)
      return base::Error{"'" + name + "' is no name in Kubernetes"};
  }
  for (const std::string& path : {options.agent_socket, options.job_socket, options.library,
                                  options.kubelet_folder, options.cdi_folder}) {
    if (!path.starts_with('/'))
      return base::Error{"'" + path + "' is no absolute path", "containers and kubelet use it too"};
  }
  const std::string jobs_folder = options.job_socket.substr(0, options.job_socket.rfind('/') + 1);
  for (const std::string& path :
       {options.agent_socket, options.kubelet_folder, options.cdi_folder}) {
    if (base::IsInFolder(path, jobs_folder))
      return base::Error{"the folder of --job-socket has " + path + ", too",
                         "containers mount that folder, and their root would operate the node",
                         "give [agent] job_socket of spillwayd a folder of its own"};
  }
  if (!options.serves_claims && options.slots == 0)
    return base::Error{"there is nothing to serve", "", "with --claims=off, add --slots N"};
  return base::Ok();
}

}  // namespace

base::Result<DriverOptions> ReadDriverOptions(const std::vector<std::string>& arguments) {
  Line line;
  const auto operands = base::TakeOptions(arguments, kRows, line);
  if (!operands) return operands.status();
  if (!operands->empty())
    return base::Error{"cannot use " + operands->front(), "spillway-kubernetes takes options only"};
  DriverOptions& options = line.options;
  SetFromEnvironment(options.node, "NODE_NAME");
  SetFromEnvironment(options.instance, "POD_UID");
  for (base::Status taken :
       {TakeWord("gpus", line.gpus, "give", "leave", options.gives_gpus),
        TakeWord("frameworks", line.frameworks, "set", "keep", options.set_frameworks),
        TakeWord("claims", line.claims, "serve", "off", options.serves_claims),
        TakeSlots(line.slots, options.slots)}) {
    if (!taken.ok()) return taken;
  }
  if (options.help || options.version) return options;
  if (base::Status checked = Check(options); !checked.ok()) return checked;
  return options;
}

std::string DriverHelp() {
  return kHelpBegin + base::OptionsHelp(base::OptionsIn(kRows)) +
         "\nSignals: SIGTERM ends it. Pods keep what they have.\n";
}

}  // namespace spillway::kubernetes
