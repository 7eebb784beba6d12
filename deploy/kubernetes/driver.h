// The driver's life: looks at the agent once a second, and tells kubelet and the API server what
// has changed.
//
// One per process, on the main thread; starts the publisher's thread and the gRPC servers.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "deploy/agent/agent_request.h"
#include "deploy/kubernetes/api_client.h"
#include "deploy/kubernetes/claim_preparer.h"
#include "deploy/kubernetes/device_plugin.h"
#include "deploy/kubernetes/dra_server.h"
#include "deploy/kubernetes/driver_options.h"
#include "deploy/kubernetes/slice_publisher.h"

namespace spillway::kubernetes {

DraServerOptions DraOptionsOf(const DriverOptions& options);

class Driver {
 public:
  explicit Driver(DriverOptions options);
  ~Driver();

  base::Status Start();
  void Turn();  // about once a second

 private:
  PreparerServices Services();
  base::Status StartClaims();
  void LookAtAgent();
  void OfferDevices();
  std::vector<Gpu> Gpus();
  void WarnOnce(std::string& last, const base::Status& status);

  // constant after Start
  const DriverOptions options_;
  const deploy::AgentAddress agent_;
  std::unique_ptr<ApiClient> api_;
  std::unique_ptr<ClaimPreparer> preparer_;
  std::unique_ptr<SlicePublisher> publisher_;
  std::thread publishing_;
  std::unique_ptr<DevicePlugin> plugin_;

  // the main thread's
  std::unique_ptr<DraServer> dra_;
  std::string agent_instance_;  // that knows all of our pods
  bool is_draining_ = false, has_heard_ = false;
  int turns_without_agent_ = 0;
  std::string agent_warning_, restore_warning_, note_warning_, socket_warning_, plugin_warning_,
      dra_warning_;

  std::mutex mutex_;       // leaf
  std::vector<Gpu> gpus_;  // guarded by mutex_; as the agent said last
};

}  // namespace spillway::kubernetes
