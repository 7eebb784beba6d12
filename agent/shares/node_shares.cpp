#include "agent/shares/node_shares.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "scheduler/networks/devices.h"

namespace spillway::agent {
namespace {

constexpr char kRecords[] = "books";  // as agents of 0.1.0 stored it
constexpr char kSlab[] = "slab-";

std::string NameOf(const Pool::NamedFile& slab) {
  char name[32];
  std::snprintf(name, sizeof name, "%s%016llx", kSlab, static_cast<unsigned long long>(slab.name));
  return name;
}

protocol::SlabName SlabNameOf(const std::string& file) {
  return protocol::SlabName{std::strtoull(file.c_str() + sizeof kSlab - 1, nullptr, 16)};
}

// Configured rates, else the device model's; 0: no limit.
LinkRates RatesOf(const Config& config, const NodeDevice& device) {
  LinkRates rates = {config.link_to_device_bytes_per_second, config.link_to_host_bytes_per_second};
  const auto known = scheduler::networks::FindProduct(device.model);
  if (rates.to_device_bytes_per_second == 0 && known)
    rates.to_device_bytes_per_second = known->model.to_device_bytes_per_second;
  if (rates.to_host_bytes_per_second == 0 && known)
    rates.to_host_bytes_per_second = known->model.to_host_bytes_per_second;
  return rates;
}

}  // namespace

bool NodeShares::IsKeptName(const std::string& name) {
  return name == kRecords || name.rfind(kSlab, 0) == 0;
}

NodeShares::NodeShares(const Config& config, const std::vector<NodeDevice>& devices,
                       int64_t host_bytes, std::vector<KeptFile> kept, FileKeeper* keeper,
                       const std::function<void(const std::string&)>& say,
                       const std::vector<std::string>& drivers_worker)
    : keeper_(*keeper), say_(say), topology_(Topology::OfThisMachine()) {
  if (!topology_) say("hwloc cannot read this machine: slabs come from any of its nodes");
  for (const NodeDevice& device : devices) {
    const bool is_known = topology_ && !device.bus_id.empty();
    nodes_.push_back(is_known ? topology_->NodeNear(device.bus_id) : kAnyNode);
    links_.push_back(LinkShare::Make(RatesOf(config, device)));
    if (!links_.back())
      say("no memory for the link of " + device.name + ": its jobs copy when they like");
  }
  SetRates(config, devices);
  // The keeper may have outdated names. Keeping a current one again changes nothing.
  for (const KeptFile& file : kept) kept_.insert(file.name);
  if (config.host_pool) MakePool(config, host_bytes, std::move(kept), drivers_worker);
  if (!config.spill_folder.empty()) OpenSpillFolder(config);
}

void NodeShares::OpenSpillFolder(const Config& config) {
  auto opened = SpillFolder::Open(config.spill_folder, config.spill_in_memory
                                                           ? SpillFolder::InMemory::kAllowed
                                                           : SpillFolder::InMemory::kRefused);
  if (!opened) return say_("evicted memory is stored in no file: " + opened.text());
  spill_folder_ = std::move(*opened);
  spill_bytes_ = config.spill_bytes;
}

void NodeShares::MakePool(const Config& config, int64_t host_bytes, std::vector<KeptFile> kept,
                          const std::vector<std::string>& drivers_worker) {
  std::optional<SlabRecords> records;
  std::vector<KeptSlab> slabs;
  for (KeptFile& file : kept) {
    if (file.name == kRecords) {
      records = SlabRecords::Adopt(std::move(file.file));
    } else {
      slabs.push_back({SlabNameOf(file.name), std::move(file.file)});
    }
  }
  if (!records) records = SlabRecords::Make();
  if (!records) return say_("no memory for the records of the host pool: jobs pin their own");
  const HugePages huge = config.huge_pages ? HugePages::kWhenThereAre : HugePages::kNever;
  maker_ = std::make_unique<ThreadedSlabMaker>(
      config.slab_bytes, huge, topology_.get(),
      config.driver_slabs ? drivers_worker : std::vector<std::string>());
  const PoolRules rules = {host_bytes, config.slab_bytes,
                           BytesOf(config.spare_slab_bytes, host_bytes),
                           nodes_.empty() ? kAnyNode : nodes_.front()};
  pool_.emplace(rules, *maker_, std::move(*records), std::move(slabs));
}

std::vector<std::pair<std::string, int>> NodeShares::FilesToKeep() const {
  std::vector<std::pair<std::string, int>> files;
  if (!pool_) return files;
  files.emplace_back(kRecords, pool_->records_file());
  for (const Pool::NamedFile& slab : pool_->SlabFiles())
    files.emplace_back(NameOf(slab), slab.file);
  return files;
}

void NodeShares::KeepFiles() {
  if (!std::exchange(changed_, false)) return;
  std::set<std::string> gone = kept_;
  for (const auto& [name, file] : FilesToKeep()) {
    gone.erase(name);
    if (kept_.count(name) != 0) continue;
    if (!keeper_.Keep(name, file)) return TryAgain();
    kept_.insert(name);
  }
  for (const std::string& name : gone) {
    if (!keeper_.Drop(name)) return TryAgain();
    kept_.erase(name);
  }
}

void NodeShares::SetRates(const Config& config, const std::vector<NodeDevice>& devices) {
  link_rates_.clear();
  for (size_t i = 0; i < links_.size(); ++i) {
    const LinkRates rates = RatesOf(config, devices[i]);
    link_rates_.push_back(
        std::min(rates.to_device_bytes_per_second, rates.to_host_bytes_per_second));
    if (links_[i]) links_[i]->SetRates(rates);
  }
}

void NodeShares::SetQuota(const PoolJob& job, int64_t bytes) {
  if (pool_) pool_->SetQuota(job, bytes);
}

void NodeShares::SetOutside(int64_t bytes) {
  if (pool_) pool_->SetOutside(bytes);
}

std::vector<Lease> NodeShares::AskForSlabs(const PoolHolder& holder, DeviceId near,
                                           int64_t size_bytes, SlabKinds kinds) {
  changed_ = true;
  return pool_ ? pool_->Ask(holder, nodes_[static_cast<size_t>(near)], size_bytes, kinds)
               : std::vector<Lease>();
}

void NodeShares::ReturnSlab(const PoolHolder& holder, protocol::SlabName name) {
  if (pool_) pool_->Return(holder, name);
}

std::vector<Lease> NodeShares::Claim(const PoolHolder& holder) {
  return pool_ ? pool_->Claim(holder) : std::vector<Lease>();
}

int64_t NodeShares::HeldBytes(const PoolHolder& holder) {
  return pool_ ? pool_->HeldBytes(holder) : 0;
}

void NodeShares::StopAsking(const PoolHolder& holder) {
  if (pool_) pool_->StopAsking(holder);
}

void NodeShares::ProcessGone(const PoolHolder& holder) {
  if (pool_) pool_->ProcessGone(holder);
}

void NodeShares::JobGone(const PoolJob& job) {
  changed_ = true;
  if (pool_) pool_->JobGone(job);
}

void NodeShares::ForgetUnclaimed() {
  changed_ = true;
  if (pool_) pool_->ForgetUnclaimed();
}

void NodeShares::GiveBackUnused(int64_t now_ns) {
  if (pool_ && pool_->GiveBackUnused(now_ns)) changed_ = true;
}

bool NodeShares::TakeMadeSlabs() {
  if (!pool_) return false;
  if (const auto problem = maker_->TakeProblem())
    say_("slabs are files from now on, not the driver's memory: " + *problem);
  const PoolView before = pool_->View();
  const bool ask_again = pool_->Tick();
  changed_ = changed_ || before.making_bytes != pool_->View().making_bytes;
  return ask_again;
}

std::optional<PoolView> NodeShares::View() const {
  return pool_ ? std::optional(pool_->View()) : std::nullopt;
}

std::optional<Shares::Place> NodeShares::JoinLink(DeviceId device, uint32_t weight) {
  std::optional<LinkShare>& link = links_[static_cast<size_t>(device)];
  const std::optional<uint32_t> slot = link ? link->Join(weight) : std::nullopt;
  if (!slot) return std::nullopt;
  return Place{*slot, link->terms_file(), link->lanes_file()};
}

void NodeShares::SetLinkWeight(DeviceId device, uint32_t slot, uint32_t weight) {
  links_[static_cast<size_t>(device)]->SetWeight(slot, weight);
}

void NodeShares::LeaveLink(DeviceId device, uint32_t slot) {
  links_[static_cast<size_t>(device)]->Leave(slot);
}

void NodeShares::MendLinks(int64_t now_ns) {
  for (std::optional<LinkShare>& link : links_) {
    if (link) link->Mend(now_ns);
  }
}

}  // namespace spillway::agent
