#include "deploy/kubernetes/driver.h"

#include <spdlog/spdlog.h>

#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "deploy/kubernetes/cdi_spec.h"
#include "deploy/kubernetes/pod_terms.h"

namespace spillway::kubernetes {
namespace {

// An agent that restarts is back before that, and nothing need move.
constexpr int kPatientTurns = 5;

void Note(const std::string& text) { spdlog::info(text); }
void Warn(const std::string& text) { spdlog::warn(text); }

Injection InjectionOf(const DriverOptions& options) {
  return {options.library, options.job_socket, options.set_frameworks};
}

base::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return base::Ok();
  return base::Error{"cannot make " + path, error.message(), "the driver needs to be root"};
}

// Otherwise the container runtime alone would say that it cannot mount its folder.
base::Status CheckJobSocket(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_socket(path, ignored)) return base::Ok();
  return base::Error{"no container can reach the agent: there is no socket at " + path, "",
                     "set [agent] job_socket in the agent's configuration, or --job-socket here"};
}

base::Result<Claim> GetClaim(ApiClient& api, const ClaimName& name, int64_t until_ns) {
  const base::Result<ApiAnswer> answer = api.Get(
      "/apis/resource.k8s.io/v1/namespaces/" + name.name_space + "/resourceclaims/" + name.name,
      until_ns);
  if (!answer) return answer.status();
  if (answer->status != 200) return ErrorOf(*answer, "claim " + name.name_space + "/" + name.name);
  base::Result<Claim> claim = ParseClaim(answer->body);
  if (claim) return claim;
  base::Error unusable = claim.error();
  unusable.code = kUnusableClaim;
  return unusable;
}

base::Result<std::string> OpenListener(const deploy::AgentAddress& agent, const std::string& claim,
                                       const std::string& pod, const deploy::Deadlines& until) {
  protocol::OpenListener wanted;
  wanted.allocation = claim;
  wanted.job = JobNameOf(pod);
  const base::Result<protocol::Message> answer = deploy::AskAgent(agent, wanted, until);
  if (!answer) return answer.status();
  if (const auto* place = std::get_if<protocol::ListenerPlace>(&*answer))
    return std::string(place->socket.view());
  const auto* done = std::get_if<protocol::Done>(&*answer);
  return base::Error{"the node agent gives the claim no socket",
                     done != nullptr ? std::string(done->text.view()) : ""};
}

// An older agent has none, and neither has one that knows no such claim.
base::Status CloseListener(const deploy::AgentAddress& agent, const std::string& claim,
                           const deploy::Deadlines& until) {
  const base::Result<protocol::Done> answer =
      deploy::TellAgent(agent, protocol::CloseListener{protocol::JobName(claim)}, until);
  const bool has_none = answer ? answer->outcome == protocol::Outcome::kUnknownJob
                               : answer.error().code == deploy::kOlderAgent;
  return has_none ? base::Ok() : deploy::StatusOf(answer);
}

}  // namespace

DraServerOptions DraOptionsOf(const DriverOptions& options) {
  return {options.kubelet_folder + "/plugins_registry",
          options.kubelet_folder + "/plugins/" + kDriver, options.instance};
}

Driver::Driver(DriverOptions options)
    : options_(std::move(options)), agent_{options_.agent_socket, "spillway-kubernetes"} {}

Driver::~Driver() {
  dra_.reset();
  plugin_.reset();
  if (publisher_ != nullptr) publisher_->Stop();
  if (publishing_.joinable()) publishing_.join();
}

std::vector<Gpu> Driver::Gpus() {
  const std::lock_guard lock(mutex_);
  return gpus_;
}

PreparerServices Driver::Services() {
  return {
      .get_claim = [this](const ClaimName& name,
                          int64_t until_ns) { return GetClaim(*api_, name, until_ns); },
      .expect_pod =
          [this](const std::string& pod, const MemoryTerms& terms, const deploy::Deadlines& until) {
            return deploy::StatusOf(deploy::TellAgent(agent_, Expecting(pod, terms), until));
          },
      .forget_pod =
          [this](const std::string& pod, const deploy::Deadlines& until) {
            return deploy::AskAgent(agent_, protocol::ForgetJob{.job = JobNameOf(pod)}, until)
                .status();
          },
      .open_listener =
          [this](const std::string& claim, const std::string& pod, const deploy::Deadlines& until) {
            return OpenListener(agent_, claim, pod, until);
          },
      .close_listener =
          [this](const std::string& claim, const deploy::Deadlines& until) {
            return CloseListener(agent_, claim, until);
          },
      .gpus = [this] { return Gpus(); },
      .warn = Warn};
}

base::Status Driver::StartClaims() {
  base::Result<ApiServer> server =
      options_.api_server.empty()
          ? ApiServerOfPod()
          : ApiServer{options_.api_server, options_.token_file, options_.ca_file};
  if (!server) return server.status();
  auto api = ApiClient::Make(*std::move(server));
  if (!api) return api.status();
  api_ = *std::move(api);
  const DraServerOptions places = DraOptionsOf(options_);
  for (const std::string& folder : {places.registry_folder, places.plugin_folder}) {
    if (base::Status made = MakeFolder(folder); !made.ok()) return made;
  }
  preparer_ =
      std::make_unique<ClaimPreparer>(PreparerOptions{places.plugin_folder, options_.cdi_folder,
                                                      InjectionOf(options_), options_.gives_gpus},
                                      Services());
  publisher_ = std::make_unique<SlicePublisher>(api_.get(), options_.node, Warn);
  publishing_ = std::thread([this] { publisher_->Run(); });
  return base::Ok();
}

base::Status Driver::Start() {
  if (base::Status made = MakeFolder(options_.cdi_folder); !made.ok()) return made;
  if (options_.serves_claims) {
    if (base::Status started = StartClaims(); !started.ok()) return started;
  }
  if (options_.slots > 0) {
    base::Status written = base::ReplaceFile(options_.cdi_folder + "/" + kSlotSpecFile,
                                             SlotSpec(InjectionOf(options_)), {.mode = 0644});
    if (!written.ok()) return written;
    plugin_ = DevicePlugin::Make({.folder = options_.kubelet_folder + "/device-plugins",
                                  .slots = options_.slots,
                                  .gives_gpus = options_.gives_gpus},
                                 Note);
  }
  return base::Ok();
}

void Driver::WarnOnce(std::string& last, const base::Status& status) {
  const std::string text = status.text();
  if (text != last && !text.empty()) Warn(text);
  last = text;
}

void Driver::LookAtAgent() {
  const base::Result<std::string> text = deploy::AskAgentForText(
      agent_, {.question = protocol::Question::kStatus, .form = protocol::Form::kJson},
      deploy::Patience::kNone);
  base::Result<NodeStatus> status = text ? ParseStatus(*text) : text.status();
  WarnOnce(agent_warning_, status.status());
  if (!status) {
    ++turns_without_agent_;
    return;
  }
  turns_without_agent_ = 0;
  has_heard_ = true;
  is_draining_ = status->draining;
  const auto bus_ids = PciBusIds(options_.gpu_folder);
  for (Gpu& gpu : status->gpus) {
    const auto id = bus_ids.find(gpu.uuid);
    if (id != bus_ids.end()) gpu.pci_bus_id = id->second;
  }
  {
    const std::lock_guard lock(mutex_);
    gpus_ = status->gpus;
  }
  WarnOnce(socket_warning_, CheckJobSocket(options_.job_socket));
  if (preparer_ == nullptr) return;
  if (agent_instance_ != status->agent_instance) {
    const base::Status restored = preparer_->Restore();
    if (restored.ok()) agent_instance_ = status->agent_instance;
    WarnOnce(restore_warning_, restored);
  }
  WarnOnce(note_warning_,
           preparer_->NotePods(status->pods, base::NowNs(CLOCK_MONOTONIC), status->waiting_pods));
}

void Driver::OfferDevices() {
  const std::vector<Gpu> gpus = Gpus();
  const bool is_away = turns_without_agent_ > kPatientTurns;
  // What an earlier driver has published stays while the agent may just be starting. Then nothing
  // is on offer: a taint would need the devices, which nobody knows yet.
  if (!has_heard_ && !is_away) return;
  std::vector<Taint> taints;
  if (is_draining_) taints.push_back({"spillway.dev/drained", "by-operator"});
  if (is_away) taints.push_back({"spillway.dev/agent-away", "true"});
  if (publisher_ != nullptr) publisher_->Offer({gpus, taints});
  if (plugin_ == nullptr) return;
  plugin_->Offer(gpus, taints.empty());
  WarnOnce(plugin_warning_, plugin_->Tend());
}

void Driver::Turn() {
  LookAtAgent();
  OfferDevices();
  if (preparer_ == nullptr || (dra_ != nullptr && dra_->IsReachable())) return;
  dra_.reset();
  auto started = DraServer::Start(DraOptionsOf(options_), preparer_.get(), Note);
  WarnOnce(dra_warning_, started.status());
  if (started) dra_ = *std::move(started);
}

}  // namespace spillway::kubernetes
