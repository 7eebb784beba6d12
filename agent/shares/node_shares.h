// The node's host pool and its devices' links, kept across restarts.
//
// Invariants
//  1. Without memory, files or hwloc, the pool or a link is absent, and this is logged once.
//  2. The keeper has every slab that a process may hold, and the records.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "agent/link/link_share.h"
#include "agent/node/node.h"
#include "agent/pool/slab_maker.h"
#include "agent/pool/spill_folder.h"

namespace spillway::agent {

// Keeps files beyond this process's life.
class FileKeeper {
 public:
  virtual ~FileKeeper() = default;
  // False: try again later.
  virtual bool Keep(const std::string& name, int file) = 0;
  virtual bool Drop(const std::string& name) = 0;
};

class NodeShares final : public Shares {
 public:
  struct KeptFile {
    std::string name;
    base::UniqueFd file;
  };
  static bool IsKeptName(const std::string& name);

  // `kept`: files of an earlier agent. `say` logs each missing feature, also later.
  // `drivers_worker`: the command that makes driver slabs, if configured.
  NodeShares(const Config& config, const std::vector<NodeDevice>& devices, int64_t host_bytes,
             std::vector<KeptFile> kept, FileKeeper* keeper,
             const std::function<void(const std::string&)>& say,
             const std::vector<std::string>& drivers_worker = {});

  // Readable when slabs were made; -1 without a pool.
  int file() const { return maker_ ? maker_->file() : -1; }
  void KeepFiles();
  // For the next agent; the files stay ours.
  std::vector<std::pair<std::string, int>> FilesToKeep() const;
  // Stops the slab maker. The last call before another program replaces this process.
  void EndMaker() { maker_.reset(); }
  void SetRates(const Config& config, const std::vector<NodeDevice>& devices);

  int NodeNear(DeviceId device) const override { return nodes_[static_cast<size_t>(device)]; }
  int64_t LinkBytesPerSecond(DeviceId device) const override {
    return link_rates_[static_cast<size_t>(device)];
  }
  void SetQuota(const PoolJob& job, int64_t bytes) override;
  void SetOutside(int64_t bytes) override;
  std::vector<Lease> AskForSlabs(const PoolHolder& holder, DeviceId near, int64_t size_bytes,
                                 SlabKinds kinds) override;
  void ReturnSlab(const PoolHolder& holder, protocol::SlabName name) override;
  std::vector<Lease> Claim(const PoolHolder& holder) override;
  int64_t HeldBytes(const PoolHolder& holder) override;
  void StopAsking(const PoolHolder& holder) override;
  void ProcessGone(const PoolHolder& holder) override;
  void JobGone(const PoolJob& job) override;
  void ForgetUnclaimed() override;
  void GiveBackUnused(int64_t now_ns) override;
  bool TakeMadeSlabs() override;
  std::optional<PoolView> View() const override;
  int64_t SpillBytes() const override { return spill_folder_ ? spill_bytes_ : 0; }
  base::Result<base::UniqueFd> OpenSpillFile(int64_t bytes) override {
    return spill_folder_->NewFile(bytes);
  }
  std::optional<Place> JoinLink(DeviceId device, uint32_t weight) override;
  void SetLinkWeight(DeviceId device, uint32_t slot, uint32_t weight) override;
  void LeaveLink(DeviceId device, uint32_t slot) override;
  void MendLinks(int64_t now_ns) override;

 private:
  void TryAgain() { changed_ = true; }
  void MakePool(const Config& config, int64_t host_bytes, std::vector<KeptFile> kept,
                const std::vector<std::string>& drivers_worker);
  void OpenSpillFolder(const Config& config);

  FileKeeper& keeper_;
  const std::function<void(const std::string&)> say_;
  std::unique_ptr<Topology> topology_;
  std::vector<int> nodes_;
  std::unique_ptr<ThreadedSlabMaker> maker_;
  std::optional<Pool> pool_;
  std::optional<SpillFolder> spill_folder_;
  int64_t spill_bytes_ = 0;
  std::vector<std::optional<LinkShare>> links_;
  std::vector<int64_t> link_rates_;  // bytes per second
  std::set<std::string> kept_;
  bool changed_ = true;
};

}  // namespace spillway::agent
