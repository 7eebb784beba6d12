// Kubelet's side of the DRA driver: registration, and the node services v1 and v1beta1, on two Unix
// sockets.
//
// Started and ended by the main thread; kubelet's requests come on gRPC's threads, and wait for
// each other in ClaimPreparer.
//
// Invariants
//  1. Every claim of a request has an entry in the answer.
//  2. Two drivers on a node (a rolling update) have sockets of their own, by `instance`.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "deploy/kubernetes/claim_preparer.h"

namespace spillway::kubernetes {

struct DraServerOptions {
  std::string registry_folder = "/var/lib/kubelet/plugins_registry";
  std::string plugin_folder = "/var/lib/kubelet/plugins/spillway.dev";
  std::string instance;  // in the sockets' names; empty: none
};

class DraServer {
 public:
  using Note = std::function<void(const std::string& text)>;
  // Removes sockets that an earlier driver has left. `preparer` outlives the server.
  static base::Result<std::unique_ptr<DraServer>> Start(const DraServerOptions& options,
                                                        ClaimPreparer* preparer, Note note);
  virtual ~DraServer() = default;

  // False: somebody has removed a socket, and the server must be started anew.
  virtual bool IsReachable() const = 0;
};

// Asks a running driver of these options for its registration, as kubelet would.
base::Status ProbeDraServer(const DraServerOptions& options);

}  // namespace spillway::kubernetes
