#include "interposer/runtime/runtime.h"

#include <stdint.h>
#include <stdlib.h>

#include <algorithm>

#include "base/mutex.h"
#include "interposer/config/config.h"
#include "interposer/driver/calling_context.h"
#include "interposer/driver/device_attribute.h"
#include "interposer/driver/driver_api.h"
#include "interposer/driver/host_memory.h"
#include "interposer/ledger/host_regions.h"
#include "interposer/ledger/libraries.h"
#include "interposer/ledger/own_mappings.h"
#include "interposer/planning/agent_session.h"
#include "interposer/planning/planner_thread.h"
#include "interposer/runtime/report.h"
#include "interposer/share/export_service.h"
#include "interposer/share/peer_table.h"

namespace spillway::interposer {

using driver::Driver;

namespace internal {
constinit JobList jobs;
}

namespace {

constinit base::Mutex making_job{base::LockRank::kJobs};
constinit bool primary_is_managed[JobList::kMost] = {};  // by device; guarded by making_job

struct Global {
  CUdeviceptr base;
  size_t bytes;
  const void* module;
  CUcontext context;  // it ends with that
  Global* next;
};
constinit Global* globals = nullptr;  // of loaded modules; guarded by making_job

// Our memory needs virtual memory management with 2 MiB granules, and readable parameters.
bool CanManage(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  size_t granule_bytes = 0;
  return Driver().cuFuncGetParamInfo && Driver().cuKernelGetParamInfo &&
         driver::HasAttribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) &&
         Driver().cuMemGetAllocationGranularity(&granule_bytes, &properties,
                                                CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
         kGranuleBytes % std::max<size_t>(granule_bytes, 1) == 0;
}

bool IsPrimary(CUcontext context, CUdevice device) {
  CUcontext primary = nullptr;
  if (Driver().cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) return false;
  Driver().cuDevicePrimaryCtxRelease_v2(device);
  return primary == context;
}

void SayUnmanagedOnce(CUdevice device) {
  static std::atomic<bool> said{false};
  if (!BudgetOf(device).bytes || said.exchange(true)) return;
  fprintf(
      stderr,
      "spillway: this device or driver has no virtual memory management (or is older than CUDA "
      "12.4): memory "
      "passes through unmanaged and the budget is not enforced; `spillway doctor` tells more\n");
}

// What the last job on the device has left. Beyond the budget it stays uncharged.
void ChargeOwnMemory(JobMemory* job) {
  OwnMappings& own = OwnMappings::Instance();
  const base::MutexLock lock(own.mutex);
  for (OwnMappings::Memory* const memory : own.PaidBy(nullptr)) {
    const bool is_here = memory->properties.location.id == job->device();
    if (is_here && job->charges().Charge(memory->bytes, Unmovable::kOwnMapping))
      memory->payer = job;
  }
}

JobMemory* MakeJob(CUcontext context) {
  CUdevice device = 0;
  size_t device_bytes = 0;
  if (Driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  if (device >= JobList::kMost ||
      Driver().cuDeviceTotalMem_v2(&device_bytes, device) != CUDA_SUCCESS || !CanManage(device)) {
    SayUnmanagedOnce(device);
    return nullptr;
  }
  const size_t host_limit_bytes =
      ProcessConfig().host_limit_bytes.value_or(driver::HostBytesToSpare());
  const base::DeviceBudget budget = BudgetOf(device);
  auto* job = new JobMemory(context, device, BudgetBytes(budget, device_bytes), host_limit_bytes,
                            ProcessConfig().park, ProcessConfig().learn);
  if (ProcessConfig().drops_eagerly) job->proofs().DropEagerly();
  if (ProcessConfig().repeats_kernels) job->learning().AllowRepeats();
  if (!budget.bytes && !AgentSession::Instance()) job->grants().ReturnFreedMemory();
  job->grants().Schedule(BudgetSchedule(ProcessConfig().budget_schedule));
  primary_is_managed[device] = IsPrimary(context, device);
  for (const Global* global = globals; global; global = global->next)
    job->stored_addresses().RegisterGlobal(global->base, global->bytes, global->module);
  ReportAtExit(job, budget);
  // The agent comes first: it may know the program from an earlier run.
  if (AgentSession* const session = AgentSession::Instance()) session->Attach(job);
  PlannerThread::Instance().Attach(job);
  for (const CUdevice peer : share::PeerTable::Instance().UsersOf(context))
    job->sharing().AllowPeer(peer);
  internal::jobs.Set(device, job);
  job->free_waits().WorkWasUnseen();
  ChargeOwnMemory(job);
  return job;
}

// Peer access between two contexts ends with either of them.
void PeersWentAway(CUcontext context) {
  for (const share::PeerTable::Access& access : share::PeerTable::Instance().ContextGone(context)) {
    if (JobMemory* const job = access.owner == context ? nullptr : JobIn(access.owner))
      job->sharing().DenyPeer(access.device);
  }
}

template <class Matches>
bool EraseGlobals(Matches matches) {
  bool has_any = false;
  for (Global** at = &globals; *at;) {
    Global* const global = *at;
    if (!matches(*global)) {
      at = &global->next;
      continue;
    }
    *at = global->next;
    delete global;
    has_any = true;
  }
  return has_any;
}

// Memory of cuMemCreate does not end with a context. From here on it is the driver's.
void ReturnOwnMemory(JobMemory* job) {
  OwnMappings& own = OwnMappings::Instance();
  const base::MutexLock lock(own.mutex);
  for (OwnMappings::Memory* const memory : own.PaidBy(job)) {
    memory->payer = nullptr;
    memory->stays = true;
    memory->is_in_run = false;
    const CUdeviceptr base = std::exchange(memory->range, 0);
    if (base) memory->real = job->own_memory().Disown(base);
  }
}

bool HasOwnRanges(JobMemory* job) {
  OwnMappings& own = OwnMappings::Instance();
  const base::MutexLock lock(own.mutex);
  const auto paid = own.PaidBy(job);
  return std::any_of(paid.begin(), paid.end(),
                     [](const OwnMappings::Memory* memory) { return memory->range != 0; });
}

void Retire(JobMemory* job) {
  ReturnOwnMemory(job);
  EraseGlobals([job](const Global& global) { return global.context == job->context(); });
  HostRegions::Instance().ContextEnded(job->context());
  PlannerThread::Instance().Detach(job);
  if (AgentSession* const session = AgentSession::Instance()) session->Detach(job);
  internal::jobs.Set(job->device(), nullptr);
  PeersWentAway(job->context());
  share::ExportService::JobEnded(job);
  job->ReleaseAll();
}

void RetireFirst(JobMemory* job) {
  const driver::CurrentContext current(job->context());
  if (HasOwnRanges(job)) job->replays().EndRecords();  // what is dropped is made again
  Driver().cuCtxSynchronize();
  Retire(job);
}

// The context is gone, but its memory and addresses remain. A short-lived context releases them.
void RetireOrphaned(JobMemory* job) {
  CUcontext context = nullptr;
  if (Driver().cuDevicePrimaryCtxRetain(&context, job->device()) != CUDA_SUCCESS) return;
  Driver().cuCtxPushCurrent_v2(context);
  Retire(job);
  Driver().cuCtxPopCurrent_v2(&context);
  Driver().cuDevicePrimaryCtxRelease_v2(job->device());
}

}  // namespace

size_t BudgetBytes(const base::DeviceBudget& budget, size_t device_bytes) {
  return std::min<size_t>(budget.bytes.value_or(device_bytes), device_bytes);
}

DeviceMemory ShownMemory(JobMemory* job, const base::DeviceBudget& budget, size_t device_free_bytes,
                         size_t device_bytes) {
  const size_t total_bytes = BudgetBytes(budget, device_bytes);
  const size_t free_bytes =
      job ? job->view().ShownFreeBytes(device_free_bytes, device_bytes) : device_free_bytes;
  return {std::min(free_bytes, total_bytes), total_bytes};
}

JobMemory* JobIn(CUcontext context) {
  return FindJob([context](JobMemory* job) { return job->context() == context; });
}

JobMemory* JobOwning(CUdeviceptr address) {
  return FindJob([address](JobMemory* job) {
    return job->Bounds().Contain(address) && job->view().Owns(address);
  });
}

JobMemory* JobOf(CUdevice device) { return Jobs().At(device); }

JobMemory* JobHere() {
  CUdevice device = 0;
  return Driver().cuCtxGetDevice(&device) == CUDA_SUCCESS ? JobOf(device) : nullptr;
}

JobMemory* JobForAllocation() {
  CUcontext context = nullptr;
  if (Driver().cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context) return nullptr;
  if (JobMemory* job = JobIn(context)) return job;
  const base::MutexLock lock(making_job);
  if (JobMemory* job = JobIn(context)) return job;
  return JobHere() ? nullptr : MakeJob(context);
}

JobMemory* JobToCharge() {
  JobMemory* const managed = JobForAllocation();
  return managed ? managed : JobHere();
}

void RegisterGlobal(CUdeviceptr base, size_t bytes, const void* module) {
  const base::MutexLock lock(making_job);
  for (const Global* known = globals; known; known = known->next) {
    if (known->base == base && known->bytes == bytes && known->module == module) return;
  }
  CUcontext context = nullptr;
  Driver().cuCtxGetCurrent(&context);
  globals = new Global{base, bytes, module, context, globals};
  ForEachJob([&](JobMemory* job) { job->stored_addresses().RegisterGlobal(base, bytes, module); });
}

void ForgetGlobals(const void* module) {
  const base::MutexLock lock(making_job);
  const bool was_library = Libraries::Instance().Remove(module);
  const bool has_any =
      EraseGlobals([module](const Global& global) { return global.module == module; });
  if (was_library || has_any)
    ForEachJob([module](JobMemory* job) { job->stored_addresses().ForgetGlobals(module); });
  // What already reads variables was enqueued before they were forgotten.
  ForEachJob([](JobMemory* job) {
    const driver::CurrentContext current(job->context());
    if (job->learning().ReadVariables()) Driver().cuCtxSynchronize();
    job->learning().ForgetKinds();
  });
}

// The driver refuses to destroy a primary context, so its memory stays.
void BeforeContextDestroyed(CUcontext context) {
  const base::MutexLock lock(making_job);
  JobMemory* const job = JobIn(context);
  if (job && !primary_is_managed[job->device()]) RetireFirst(job);
}

void AfterContextDestroyed(CUcontext context) {
  HostRegions::Instance().ContextEnded(context);
  PeersWentAway(context);
  ForEachJob([context](JobMemory* job) { job->charges().ContextDestroyed(context); });
}

void BeforePrimaryContextReset(CUdevice device) {
  const base::MutexLock lock(making_job);
  JobMemory* const job = JobOf(device);
  if (job && primary_is_managed[device]) RetireFirst(job);
}

void PrimaryContextReleased(CUdevice device) {
  const base::MutexLock lock(making_job);
  JobMemory* const job = JobOf(device);
  unsigned int flags = 0;
  int active = 1;
  if (!job || !primary_is_managed[device]) return;
  if (Driver().cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
    RetireOrphaned(job);
}

}  // namespace spillway::interposer
