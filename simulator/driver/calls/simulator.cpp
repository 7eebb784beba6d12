#include "simulator/driver/calls/simulator.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "base/environment.h"
#include "simulator/driver/calls/program_view.h"
#include "simulator/driver/machine/compute_mode.h"
#include "simulator/driver/machine/group_limits.h"
#include "simulator/driver/machine/identity.h"
#include "simulator/driver/machine/node_settings.h"
#include "simulator/driver/machine/process.h"
#include "simulator/driver/machine/statistics.h"
#include "simulator/driver/memory/sparse_bytes.h"

namespace spillway::simulator {
namespace {

std::atomic<Simulator*> the_simulator{nullptr};

std::string FolderBesideDriver(const char* name) {
  Dl_info here;
  if (dladdr(reinterpret_cast<void*>(&Initialise), &here) == 0) return name;
  return std::filesystem::path(here.dli_fname).parent_path() / name;
}

const char* Setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

bool ReadCapacity(std::uint64_t& capacity_bytes) {
  const char* text = Setting(environment::kSimCapacity, nullptr);
  if (text == nullptr) return true;
  char* end = nullptr;
  capacity_bytes = std::strtoull(text, &end, 10);
  return *end == '\0' && capacity_bytes >= PhysicalMemory::kGranuleBytes;
}

base::Status ReadDeclaredUses(DeclaredUses& uses) {
  const PluginPaths plugins = FindPluginPaths();
  std::vector<std::string> paths = plugins.listed;
  paths.push_back(plugins.beside_program);
  for (std::string path : paths) {
    if (!path.ends_with(kPluginEnding)) continue;
    path.replace(path.size() - kPluginEnding.size(), kPluginEnding.size(), ".uses");
    const base::Status added = uses.AddFile(path);
    const bool is_missing = !added.ok() && added.error().code != 0;
    if (!added.ok() && !is_missing) return added;
  }
  return base::Ok();
}

base::Status ReadRules(DeclaredUses& uses) {
  std::stringstream each(Setting(environment::kSimRules, ""));
  for (std::string path; std::getline(each, path, ':');) {
    if (path.empty()) continue;
    if (base::Status added = uses.AddFile(path); !added.ok()) return added;
  }
  return base::Ok();
}

// Runs after the driver has shut down.
void LeaveNode() {
  Simulator* const sim = the_simulator;
  if (sim != nullptr && sim->node != nullptr && !IsForkedChild()) sim->node->Leave();
}

CUresult Refuse(const std::string& reason) {
  std::fprintf(stderr, "simulated GPU: %s\n", reason.c_str());
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

Simulator::Simulator(const Profile& device, int device_count, std::uint64_t capacity_bytes,
                     bool real_clock, std::unique_ptr<Node> shared_with)
    : profile(device),
      node(std::move(shared_with)),
      engine(profile, addresses, real_clock, device_count, real_clock ? nullptr : node.get()),
      addresses(device_count),
      devices(device_count, capacity_bytes, addresses, node.get()),
      managed_heap(devices.At(0).physical, addresses, Location::kHost),
      vmm(devices, addresses, engine),
      imports(devices, addresses) {}

std::unique_ptr<Context> Simulator::MakeContext(Device& device, unsigned flags, bool is_primary) {
  auto context = std::make_unique<Context>();
  context->id = next_id++;
  context->device = &device;
  ++TheStatistics().contexts_of_device[static_cast<std::size_t>(device.ordinal)];
  context->primary = is_primary;
  context->flags = flags;
  context->limits = {{CU_LIMIT_STACK_SIZE, 1024},
                     {CU_LIMIT_PRINTF_FIFO_SIZE, std::size_t{1} << 20},
                     {CU_LIMIT_MALLOC_HEAP_SIZE, std::size_t{8} << 20},
                     {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
                     {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
                     {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
                     {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
  context->legacy =
      std::make_shared<Stream>(Stream{next_id++, context.get(), true, true, 0, 0, nullptr});
  return context;
}

bool Simulator::IsContext(const Context* context) const {
  const auto is_primary = [&](const auto& device) { return device->primary.get() == context; };
  return context != nullptr && (std::any_of(devices.begin(), devices.end(), is_primary) ||
                                contexts.contains(const_cast<Context*>(context)));
}

void Simulator::Release(std::uintptr_t base) {
  const Allocation allocation = *allocations.FindBase(base);
  switch (allocation.kind) {
    case AllocationKind::kDevice:
      devices.At(allocation.device).heap.Free(base);
      break;
    case AllocationKind::kManaged:
      managed_heap.Free(base);
      break;
    case AllocationKind::kPool:
      allocation.pool->Free(base, 0, nullptr);
      break;
    case AllocationKind::kPinnedHost:
      munmap(reinterpret_cast<void*>(base), WholePages(allocation.size_bytes));
      [[fallthrough]];
    case AllocationKind::kRegisteredHost:
      ForgetMapping(base);
      TheStatistics().host_bytes.Subtract(WholePages(allocation.size_bytes));
      break;
    case AllocationKind::kGraph:
      graph_memory.RemoveLive(base);
      break;
    case AllocationKind::kGlobal:
      break;
    case AllocationKind::kOpened:
      while (!imports.Close(base)) {
      }
      break;
  }
  allocations.Remove(base);
}

Simulator* TheSimulator() { return the_simulator; }

CUresult Initialise() {
  if (IsForkedChild()) return CUDA_ERROR_NOT_INITIALIZED;
  if (the_simulator != nullptr) return CUDA_SUCCESS;
  // Before the lock: dladdr waits for the loader's lock, whose owner may wait here.
  const std::string profiles = FolderBesideDriver("profiles");
  std::vector<const Image*> plugins = OpenPluginsIn(FolderBesideDriver("plugins"));
  FindProgramView();
  static std::mutex once;
  const std::lock_guard lock(once);
  if (the_simulator != nullptr) return CUDA_SUCCESS;
  const char* name = Setting(environment::kSimProfile, "h200");
  const base::Result<Profile> loaded = LoadProfile(name, profiles);
  if (!loaded) return Refuse(loaded.text());
  const Profile& profile = *loaded;
  const std::string clock = Setting(environment::kSimClock, "virtual");
  if (clock != "virtual" && clock != "real")
    return Refuse("unknown clock '" + clock + "'; known: virtual real");
  const std::string compute = Setting(environment::kSimCompute, "full");
  if (compute != "full" && compute != "tags")
    return Refuse("unknown way to compute '" + compute + "'; known: full tags");
  DeclaredUses declared_uses;
  if (compute == "tags") {
    for (const auto read : {ReadDeclaredUses, ReadRules}) {  // rules replace a program's own
      const base::Status done = read(declared_uses);
      if (!done.ok()) return Refuse(done.text());
    }
  }
  std::uint64_t capacity_bytes = profile.capacity_bytes;
  if (!ReadCapacity(capacity_bytes)) {
    return Refuse(std::string(environment::kSimCapacity) +
                  " is not a number of bytes of at least 2097152");
  }
  capacity_bytes -= capacity_bytes % PhysicalMemory::kGranuleBytes;
  const int device_count = std::atoi(Setting(environment::kSimDevices, "1"));
  if (device_count < 1 || device_count > kMostDevices) {
    return Refuse(std::string(environment::kSimDevices) +
                  " is not a number of devices from 1 to 8");
  }
  const Machine machine = {profile.name, device_count, capacity_bytes, LinkRatesOf(profile)};
  base::Result<std::unique_ptr<Node>> node = JoinNode(machine, clock == "virtual");
  if (!node) return Refuse(node.text());
  TheStatistics().SetIdentity(profile.name, clock);
  TheStatistics().device_bytes_capacity = capacity_bytes;
  TheStatistics().device_count = static_cast<std::size_t>(device_count);
  EnforceGroupLimits(UuidsOf(profile, device_count));
  SetComputeMode(compute == "tags" ? ComputeMode::kTags : ComputeMode::kFull);
  auto* const simulator =
      new Simulator(profile, device_count, capacity_bytes, clock == "real", *std::move(node));
  simulator->declared_uses = std::move(declared_uses);
  simulator->plugins.AddOfDriver(std::move(plugins));
  the_simulator = simulator;
  std::atexit(LeaveNode);
  MarkInitialised();
  return CUDA_SUCCESS;
}

}  // namespace spillway::simulator
