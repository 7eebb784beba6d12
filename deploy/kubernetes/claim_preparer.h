// Prepares claims for kubelet: binds their pods' budgets at the agent, and writes their CDI
// specifications.
//
// One per process. Called by kubelet's requests (dra_service) and by the main loop, on any thread;
// calls wait for each other, also for those of a second driver on the node (driver_state.h).
//
// Invariants
//  1. Prepare and Unprepare may be repeated at any time, in any order, and after a crash between
//     any two of their steps.
//  2. A claim is prepared only if the agent has taken the terms of each of its pods.
//  3. What Prepare does is in the state file before it is done, and Unprepare takes it from there:
//     the claim may be gone from the API server, and the agent may be away.
//  4. A failed Prepare leaves nothing of the claims that it did not prepare.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/kubernetes/cdi_spec.h"
#include "deploy/kubernetes/claim.h"
#include "deploy/kubernetes/driver_state.h"
#include "deploy/kubernetes/node_devices.h"

namespace spillway::kubernetes {

struct GivenDevice {
  std::string request, pool, device, share_id;
  std::vector<std::string> cdi_devices;
  bool operator==(const GivenDevice&) const = default;
};

// The world around it; functions may be called on any thread.
struct PreparerServices {
  // An error whose code is ENOENT: there is no such claim.
  std::function<base::Result<Claim>(const ClaimName&)> get_claim;
  std::function<base::Status(const std::string& pod, const MemoryTerms&)> expect_pod;
  std::function<base::Status(const std::string& pod)> forget_pod;
  std::function<std::vector<Gpu>()> gpus;
  std::function<void(const std::string& text)> warn;
};

struct PreparerOptions {
  std::string state_folder, cdi_folder;
  Injection injection;
  // Also hands out the GPU, by the name in the CDI specification of NVIDIA's container toolkit.
  // Otherwise another driver does.
  bool gives_gpus = true;
};

class ClaimPreparer {
 public:
  ClaimPreparer(PreparerOptions options, PreparerServices services);

  using Prepared = std::map<std::string, base::Result<std::vector<GivenDevice>>>;  // by uid
  Prepared Prepare(const std::vector<ClaimName>& names);
  std::map<std::string, base::Status> Unprepare(const std::vector<ClaimName>& names);

  // After a start of this process or of the agent: everything that the state file says is done.
  base::Status Restore();

  // The agent sees these pods. Kubelet prepares a claim once, and tells of no further pod that
  // shares it. So unknown pods are looked for in the prepared claims.
  base::Status NotePods(const std::set<std::string>& pods);

 private:
  using Access = StateFile::Access;
  base::Result<ClaimRecord> Resolve(const ClaimName& name) const;
  base::Result<PreparedDevice> Resolve(const AllocatedDevice& device) const;
  base::Status Finish(const ClaimRecord& claim, const DriverState& state);
  base::Status Expect(const DriverState& state, const std::vector<std::string>& pods);
  base::Status WriteSpec(const ClaimRecord& claim) const;
  void RemoveSpec(const std::string& uid) const;
  void Release(DriverState& state, const std::string& uid);
  void ForgetPods(Access& access);
  void RemoveStraySpecs(const DriverState& state) const;
  std::vector<GivenDevice> GivenBy(const ClaimRecord& claim) const;
  Access Opened(base::Result<Access> opened) const;

  const PreparerOptions options_;
  const PreparerServices services_;
  const StateFile file_;
  std::set<std::string> known_strangers_;  // guarded by the state file's lock
};

}  // namespace spillway::kubernetes
