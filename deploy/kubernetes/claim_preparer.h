// Prepares claims for kubelet: binds their pods' budgets at the agent, and writes their CDI
// specifications.
//
// One per process. Kubelet's requests (dra_server) call Prepare and Unprepare on any thread, the
// main loop the rest. Calls wait for each other, also for those of a second driver on the node
// (driver_state.h), but not while they ask the API server.
//
// Invariants
//  1. Prepare and Unprepare may be repeated at any time, in any order, and after a crash between
//     any two of their steps.
//  2. A claim is prepared only if the agent has taken the terms of each of its pods, and gives the
//     claim a socket of its own for them. An older agent has only the one for all jobs.
//  3. What Prepare does is in the state file before it is done, and Unprepare takes it from there:
//     the claim may be gone from the API server, and the agent may be away.
//  4. A failed Prepare leaves nothing of the claims that it did not prepare.
//  5. A call ends by one deadline, however many claims it has: kubelet waits 45 s. Where the agent
//     is away, only the first claim of a Prepare waits for it.
//  6. What the agent is still to hear of is in the state file, and NotePods tries it again.
#pragma once

#include <errno.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/agent/agent_request.h"
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

// The error of a claim that is there, and that this driver cannot use.
inline constexpr int kUnusableClaim = EBADMSG;

// The world around it; functions may be called on any thread.
struct PreparerServices {
  // Ends by `until_ns` (CLOCK_MONOTONIC). An error's code is ENOENT if there is no such claim, and
  // kUnusableClaim.
  std::function<base::Result<Claim>(const ClaimName&, int64_t until_ns)> get_claim;
  std::function<base::Status(const std::string& pod, const MemoryTerms&, const deploy::Deadlines&)>
      expect_pod;
  std::function<base::Status(const std::string& pod, const deploy::Deadlines&)> forget_pod;
  // The path of the claim's own socket, which this pod may use from now on, too. An error's code is
  // deploy::kOlderAgent if the agent makes none.
  std::function<base::Result<std::string>(const std::string& claim, const std::string& pod,
                                          const deploy::Deadlines&)>
      open_listener;
  std::function<base::Status(const std::string& claim, const deploy::Deadlines&)> close_listener;
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

  // After a start of this process or of the agent: everything that the state file says is done. It
  // ends well if the agent refuses a pod's terms: NotePods states them again.
  base::Status Restore();

  // The agent sees these pods at `now_ns`, any clock, and refuses the waiting ones at a claim's
  // socket. Kubelet prepares a claim once, and tells of
  // no pod that joins or leaves it later. So new pods are looked for in all prepared claims; and
  // shared claims of pods that the agent does not see are looked at now and then. What the agent
  // refuses is stated again at growing intervals. While a pod waits, it is looked for again and
  // again.
  base::Status NotePods(const std::set<std::string>& pods, int64_t now_ns,
                        const std::set<std::string>& waiting = {});

 private:
  using Access = StateFile::Access;
  using FetchedClaims = std::map<std::string, base::Result<Claim>>;  // by uid
  // A call of kubelet's, between its steps.
  struct Preparation {
    Access access;
    deploy::Deadlines until;
    std::set<std::string> added = {};               // uids
    std::map<std::string, base::Status> told = {};  // by pod
    Prepared results = {};
  };
  struct Look {  // at claims, for their pods
    std::map<std::string, ClaimRecord> records;
    FetchedClaims claims = {};
    base::Status status = {};  // an error: some could not be looked at
  };

  FetchedClaims Fetch(const std::vector<ClaimName>& names, int64_t until_ns) const;
  base::Result<ClaimRecord> Resolve(const Claim& claim) const;
  base::Result<PreparedDevice> Resolve(const AllocatedDevice& device) const;
  base::Result<ClaimRecord> RecordFor(const ClaimName& name, const base::Result<Claim>& fetched,
                                      const ClaimRecord* stored) const;
  void Admit(const ClaimName& name, const base::Result<Claim>& fetched, Preparation& call) const;
  void Finish(const std::string& uid, Preparation& call);
  base::Status ExpectPodsOf(ClaimRecord& claim, Preparation& call) const;
  base::Status OpenListener(ClaimRecord& claim, const std::string& pod,
                            const deploy::Deadlines& until) const;
  base::Status CloseListeners(DriverState& state, const deploy::Deadlines& until) const;
  base::Status Expect(const std::string& pod, const Preparation& call) const;
  base::Status WriteSpec(const ClaimRecord& claim) const;
  void RemoveSpec(const std::string& uid) const;
  base::Status TellAgent(Access& access, const deploy::Deadlines& until) const;
  base::Status ForgetPods(DriverState& state, const deploy::Deadlines& until) const;
  base::Status ExpectPods(DriverState& state, const deploy::Deadlines& until) const;
  std::set<std::string> PodsToLookFor(const std::set<std::string>& all,
                                      const std::set<std::string>& waiting, int64_t now_ns);
  void WarnOfWaiting(const std::set<std::string>& waiting, int64_t now_ns);
  Look RecordsToLookAt(const DriverState& state, const std::set<std::string>& pods,
                       const std::set<std::string>& sought, int64_t now_ns);
  void LookAt(Look& look, int64_t until_ns);
  // False: something has changed meanwhile.
  static bool TakePods(const Look& look, const std::set<std::string>& pods, DriverState& state);
  void RemoveStraySpecs(const DriverState& state) const;
  std::vector<GivenDevice> GivenBy(const ClaimRecord& claim) const;
  Access Opened(base::Result<Access> opened) const;

  const PreparerOptions options_;
  const PreparerServices services_;
  const StateFile file_;

  // the main loop's
  std::set<std::string> known_pods_;       // for which all claims were looked at, with success
  std::set<std::string> unusable_claims_;  // that were warned of
  int64_t next_look_ns_ = INT64_MIN, next_tell_ns_ = INT64_MIN;
  int64_t next_search_ns_ = INT64_MIN, next_warning_ns_ = INT64_MIN;  // of waiting pods
  std::map<std::string, int64_t> waiting_since_ns_;                   // by pod
  int refusals_ = 0;                                                  // by the agent, in a row
  base::Status last_told_;
};

}  // namespace spillway::kubernetes
