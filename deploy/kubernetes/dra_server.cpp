#include "deploy/kubernetes/dra_server.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/unique_fd.h"
#include "base/unix_socket.h"
#include "deploy/kubernetes/claim.h"
#include "dra_v1.grpc.pb.h"
#include "dra_v1beta1.grpc.pb.h"
#include "registration.grpc.pb.h"

namespace spillway::kubernetes {
namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;
namespace v1beta1 = k8s::io::kubelet::pkg::apis::dra::v1beta1;
namespace registration = pluginregistration;

constexpr int kMostThreads = 16;
constexpr auto kProbePatience = std::chrono::seconds(5);
constexpr auto kEndPatience = std::chrono::seconds(5);
constexpr char kRegistrationEnd[] = "-reg.sock";

struct V1 {
  using Service = v1::DRAPlugin::Service;
  using PrepareRequest = v1::NodePrepareResourcesRequest;
  using PrepareResponse = v1::NodePrepareResourcesResponse;
  using UnprepareRequest = v1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = v1::NodeUnprepareResourcesResponse;
};
struct V1Beta1 {
  using Service = v1beta1::DRAPlugin::Service;
  using PrepareRequest = v1beta1::NodePrepareResourcesRequest;
  using PrepareResponse = v1beta1::NodePrepareResourcesResponse;
  using UnprepareRequest = v1beta1::NodeUnprepareResourcesRequest;
  using UnprepareResponse = v1beta1::NodeUnprepareResourcesResponse;
};

template <class Request>
std::vector<ClaimName> NamesIn(const Request& request) {
  std::vector<ClaimName> names;
  for (const auto& claim : request.claims())
    names.push_back({claim.namespace_(), claim.name(), claim.uid()});
  return names;
}

template <class Device>
void Fill(const GivenDevice& given, Device& device) {
  device.add_request_names(given.request);
  device.set_pool_name(given.pool);
  device.set_device_name(given.device);
  for (const std::string& name : given.cdi_devices) device.add_cdi_device_ids(name);
  if constexpr (requires { device.set_share_id(given.share_id); }) {
    if (!given.share_id.empty()) device.set_share_id(given.share_id);
  }
}

template <class Version>
class NodeService final : public Version::Service {
 public:
  NodeService(ClaimPreparer* preparer, const DraServer::Note* note)
      : preparer_(*preparer), note_(*note) {}

  grpc::Status NodePrepareResources(grpc::ServerContext*,
                                    const typename Version::PrepareRequest* request,
                                    typename Version::PrepareResponse* response) override {
    const std::vector<ClaimName> names = NamesIn(*request);
    const ClaimPreparer::Prepared prepared = preparer_.Prepare(names);
    for (const ClaimName& name : names) {
      auto& entry = (*response->mutable_claims())[name.uid];
      const auto& result = prepared.at(name.uid);
      Tell("prepare", name, result.status());
      if (!result) {
        entry.set_error(result.text());
        continue;
      }
      for (const GivenDevice& device : *result) Fill(device, *entry.add_devices());
    }
    return grpc::Status::OK;
  }

  grpc::Status NodeUnprepareResources(grpc::ServerContext*,
                                      const typename Version::UnprepareRequest* request,
                                      typename Version::UnprepareResponse* response) override {
    const std::vector<ClaimName> names = NamesIn(*request);
    const auto results = preparer_.Unprepare(names);
    for (const ClaimName& name : names) {
      const base::Status& result = results.at(name.uid);
      (*response->mutable_claims())[name.uid].set_error(result.text());
      Tell("unprepare", name, result);
    }
    return grpc::Status::OK;
  }

 private:
  void Tell(const char* request, const ClaimName& name, const base::Status& result) const {
    note_(std::string(request) + " claim=" + name.name_space + "/" + name.name +
          " uid=" + name.uid + (result.ok() ? " outcome=done" : " failed: " + result.text()));
  }

  ClaimPreparer& preparer_;
  const DraServer::Note& note_;
};

class RegistrationService final : public registration::Registration::Service {
 public:
  RegistrationService(std::string endpoint, const DraServer::Note* note)
      : endpoint_(std::move(endpoint)), note_(*note) {}

  grpc::Status GetInfo(grpc::ServerContext*, const registration::InfoRequest*,
                       registration::PluginInfo* info) override {
    info->set_type("DRAPlugin");
    info->set_name(kDriver);
    info->set_endpoint(endpoint_);
    // Names of services without their package's path, unlike in a request's address.
    info->add_supported_versions("v1.DRAPlugin");
    info->add_supported_versions("v1beta1.DRAPlugin");
    return grpc::Status::OK;
  }
  grpc::Status NotifyRegistrationStatus(grpc::ServerContext*,
                                        const registration::RegistrationStatus* status,
                                        registration::RegistrationStatusResponse*) override {
    note_(status->plugin_registered() ? "kubelet has registered the driver"
                                      : "kubelet refuses the driver: " + status->error());
    return grpc::Status::OK;
  }

 private:
  const std::string endpoint_;
  const DraServer::Note& note_;
};

std::string Dashed(const std::string& instance) { return instance.empty() ? "" : "-" + instance; }
std::string RegistrationSocket(const DraServerOptions& options) {
  return options.registry_folder + "/" + kDriver + Dashed(options.instance) + kRegistrationEnd;
}
std::string NodeSocket(const DraServerOptions& options) {
  return options.plugin_folder + "/dra" + Dashed(options.instance) + ".sock";
}

bool Answers(const std::string& socket_path) {
  const base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::UnixAddress address = base::UnixAddressOf(socket_path);
  return socket && connect(socket.get(), address.get(), address.size) == 0;
}

// A killed driver's: kubelet would try them again and again.
void RemoveDeadSockets(const std::string& folder, const std::string& begin,
                       const std::string& end) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(begin) && name.ends_with(end) && !Answers(entry.path()))
      unlink(entry.path().c_str());
  }
}

base::Result<std::unique_ptr<grpc::Server>> Serve(const std::string& path,
                                                  const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  builder.SetResourceQuota(grpc::ResourceQuota().SetMaxThreads(kMostThreads));
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  for (grpc::Service* const service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || !std::filesystem::exists(path))
    return base::Error{"cannot listen on " + path, "",
                       "does its folder exist, and may this process write there?"};
  return server;
}

class GrpcDraServer final : public DraServer {
 public:
  GrpcDraServer(const DraServerOptions& options, ClaimPreparer* preparer, Note note)
      : note_(std::move(note)),
        registration_path_(RegistrationSocket(options)),
        node_path_(NodeSocket(options)),
        v1_(preparer, &note_),
        v1beta1_(preparer, &note_),
        registration_(node_path_, &note_) {}
  ~GrpcDraServer() override {
    for (const auto& server : {registrar_.get(), node_.get()}) {
      if (server != nullptr) server->Shutdown(std::chrono::system_clock::now() + kEndPatience);
    }
  }

  // Kubelet asks as soon as it sees the registration's socket, so that comes last.
  base::Status Begin() {
    auto node = Serve(node_path_, {&v1_, &v1beta1_});
    if (!node) return node.status();
    node_ = *std::move(node);
    auto registrar = Serve(registration_path_, {&registration_});
    if (!registrar) return registrar.status();
    registrar_ = *std::move(registrar);
    return base::Ok();
  }

  bool IsReachable() const override {
    std::error_code ignored;
    return std::filesystem::exists(registration_path_, ignored) &&
           std::filesystem::exists(node_path_, ignored);
  }

 private:
  const Note note_;
  const std::string registration_path_, node_path_;
  NodeService<V1> v1_;
  NodeService<V1Beta1> v1beta1_;
  RegistrationService registration_;
  std::unique_ptr<grpc::Server> node_, registrar_;
};

}  // namespace

base::Result<std::unique_ptr<DraServer>> DraServer::Start(const DraServerOptions& options,
                                                          ClaimPreparer* preparer, Note note) {
  RemoveDeadSockets(options.registry_folder, kDriver, kRegistrationEnd);
  RemoveDeadSockets(options.plugin_folder, "dra", ".sock");
  auto server = std::make_unique<GrpcDraServer>(options, preparer, std::move(note));
  if (base::Status begun = server->Begin(); !begun.ok()) return begun;
  return std::unique_ptr<DraServer>(std::move(server));
}

base::Status ProbeDraServer(const DraServerOptions& options) {
  const std::string path = RegistrationSocket(options);
  const auto stub = registration::Registration::NewStub(
      grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kProbePatience);
  registration::PluginInfo info;
  const grpc::Status asked = stub->GetInfo(&context, {}, &info);
  if (!asked.ok()) return base::Error{"no driver answers on " + path, asked.error_message()};
  if (!Answers(info.endpoint())) return base::Error{"no driver answers on " + info.endpoint()};
  return base::Ok();
}

}  // namespace spillway::kubernetes
