#include "deploy/kubernetes/device_plugin.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/environment.h"
#include "deploy/kubernetes/cdi_spec.h"
#include "deploy/kubernetes/gpu_slots.h"
#include "device_plugin.grpc.pb.h"

namespace spillway::kubernetes {
namespace {

constexpr char kVersion[] = "v1beta1", kSocket[] = "spillway.sock", kKubelet[] = "kubelet.sock";
constexpr int kMostThreads = 16;
constexpr auto kPatience = std::chrono::seconds(5), kLook = std::chrono::seconds(1);

// The node's GPUs as the main thread saw them last.
class SlotBoard {
 public:
  explicit SlotBoard(int slots) : slots_(slots) {}

  void Offer(const std::vector<Gpu>& gpus, bool takes_jobs) {
    const std::lock_guard lock(mutex_);
    std::vector<Slot> list = SlotsOf(gpus, slots_, takes_jobs);
    gpus_ = gpus;
    if (list == list_) return;
    list_ = std::move(list);
    ++version_;
    changed_.notify_all();
  }
  // Waits for another version, at most kLook.
  std::vector<Slot> Next(uint64_t& version) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook, [&] { return version_ != version; });
    version = version_;
    return list_;
  }
  std::vector<Gpu> gpus() {
    const std::lock_guard lock(mutex_);
    return gpus_;
  }
  int slots() const { return slots_; }

 private:
  const int slots_;
  std::mutex mutex_;  // leaf
  std::condition_variable changed_;
  std::vector<Gpu> gpus_;
  std::vector<Slot> list_;
  uint64_t version_ = 1;
};

class SlotService final : public v1beta1::DevicePlugin::Service {
 public:
  SlotService(SlotBoard* board, bool gives_gpus) : board_(*board), gives_gpus_(gives_gpus) {}

  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override {
    options->set_get_preferred_allocation_available(true);
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    uint64_t version = 0, told = 0;
    while (!context->IsCancelled()) {
      const std::vector<Slot> slots = board_.Next(version);
      if (version == told) continue;
      told = version;
      v1beta1::ListAndWatchResponse list;
      for (const Slot& slot : slots) {
        v1beta1::Device& device = *list.add_devices();
        device.set_id(slot.id);
        device.set_health(slot.is_healthy ? "Healthy" : "Unhealthy");
      }
      if (!writer->Write(list)) break;
    }
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override {
    for (const auto& container : request->container_requests()) {
      auto& answer = *response->add_container_responses();
      const auto chosen = PreferredSlots(
          {container.available_deviceids().begin(), container.available_deviceids().end()},
          {container.must_include_deviceids().begin(), container.must_include_deviceids().end()},
          static_cast<size_t>(std::max(container.allocation_size(), 0)));
      for (const std::string& id : chosen) answer.add_deviceids(id);
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const auto& container : request->container_requests()) {
      const base::Result<SlotGrant> grant =
          GrantOf({container.devices_ids().begin(), container.devices_ids().end()}, board_.gpus(),
                  board_.slots());
      if (!grant) return {grpc::StatusCode::INVALID_ARGUMENT, grant.text()};
      auto& answer = *response->add_container_responses();
      (*answer.mutable_envs())[environment::kBudget] = std::to_string(grant->budget_bytes);
      answer.add_cdi_devices()->set_name(kSlotDevice);
      if (!gives_gpus_) continue;
      for (const std::string& uuid : grant->gpus)
        answer.add_cdi_devices()->set_name("nvidia.com/gpu=" + uuid);
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest*,
                                 v1beta1::PreStartContainerResponse*) override {
    return grpc::Status::OK;
  }

 private:
  SlotBoard& board_;
  const bool gives_gpus_;
};

// A file's identity: a restarted kubelet makes a new socket. 0: there is none.
uint64_t IdentityOf(const std::string& path) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0) return 0;
  return facts.st_ino ^ (static_cast<uint64_t>(facts.st_ctim.tv_nsec) << 20) ^
         static_cast<uint64_t>(facts.st_ctim.tv_sec);
}

class GrpcDevicePlugin final : public DevicePlugin {
 public:
  GrpcDevicePlugin(const DevicePluginOptions& options, Note note)
      : options_(options),
        note_(std::move(note)),
        board_(options.slots),
        service_(&board_, options.gives_gpus) {}
  ~GrpcDevicePlugin() override { End(); }

  void Offer(const std::vector<Gpu>& gpus, bool takes_jobs) override {
    board_.Offer(gpus, takes_jobs);
  }

  base::Status Tend() override {
    const std::string kubelet = options_.folder + "/" + kKubelet;
    const uint64_t identity = IdentityOf(kubelet);
    if (identity == 0) {
      registered_with_ = 0;
      return base::Error{"kubelet is not there (" + kubelet + ")"};
    }
    if (identity == registered_with_ && IdentityOf(Socket()) != 0) return base::Ok();
    End();
    if (base::Status begun = Begin(); !begun.ok()) return begun;
    if (base::Status registered = Register(kubelet); !registered.ok()) return registered;
    registered_with_ = identity;
    note_("kubelet has registered " + options_.resource);
    return base::Ok();
  }

 private:
  std::string Socket() const { return options_.folder + "/" + kSocket; }

  base::Status Begin() {
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(grpc::ResourceQuota().SetMaxThreads(kMostThreads));
    builder.AddListeningPort("unix:" + Socket(), grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || IdentityOf(Socket()) == 0)
      return base::Error{"cannot listen on " + Socket()};
    return base::Ok();
  }
  void End() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kLook);
    server_.reset();
  }

  base::Status Register(const std::string& kubelet) const {
    const auto stub = v1beta1::Registration::NewStub(
        grpc::CreateChannel("unix:" + kubelet, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    context.set_authority("localhost");
    v1beta1::RegisterRequest request;
    request.set_version(kVersion);
    request.set_endpoint(kSocket);
    request.set_resource_name(options_.resource);
    request.mutable_options()->set_get_preferred_allocation_available(true);
    v1beta1::Empty empty;
    const grpc::Status answer = stub->Register(&context, request, &empty);
    if (answer.ok()) return base::Ok();
    return base::Error{"kubelet does not register " + options_.resource, answer.error_message()};
  }

  const DevicePluginOptions options_;
  const Note note_;
  SlotBoard board_;
  SlotService service_;
  std::unique_ptr<grpc::Server> server_;
  uint64_t registered_with_ = 0;
};

}  // namespace

std::unique_ptr<DevicePlugin> DevicePlugin::Make(const DevicePluginOptions& options, Note note) {
  return std::make_unique<GrpcDevicePlugin>(options, std::move(note));
}

}  // namespace spillway::kubernetes
