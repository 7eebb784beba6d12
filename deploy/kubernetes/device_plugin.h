// The device plugin (v1beta1): slots of the node's GPUs, for clusters without DRA.
//
// Started, fed by Offer, and ended by the main thread; kubelet's requests come on gRPC's threads.
//
// Kubelet removes the plugin's socket when it starts, and then wants to be registered with again:
// Tend does that, about once a second.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/kubernetes/node_devices.h"

namespace spillway::kubernetes {

struct DevicePluginOptions {
  std::string folder = "/var/lib/kubelet/device-plugins";
  std::string resource = "spillway.dev/gpu-slot";
  int slots = 0;  // of each GPU; 0: no device plugin
  bool gives_gpus = true;
};

class DevicePlugin {
 public:
  using Note = std::function<void(const std::string& text)>;
  static std::unique_ptr<DevicePlugin> Make(const DevicePluginOptions& options, Note note);
  virtual ~DevicePlugin() = default;

  virtual void Offer(const std::vector<Gpu>& gpus, bool takes_jobs) = 0;
  // An error: kubelet is not there, or refuses.
  virtual base::Status Tend() = 0;
};

}  // namespace spillway::kubernetes
