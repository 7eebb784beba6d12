#include <optional>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/entry/kernel_parameters.h"
#include "interposer/entry/parameter_scan.h"
#include "interposer/entry/transfers.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::LaunchCall;
using interposer::LaunchDimensions;

struct WholeLaunch {
  std::optional<LaunchCall> call;
  interposer::UnreadParts unread;  // the call's
};

void NoteFunctionScan(void* function) { MarkScanned(static_cast<CUfunction>(function)); }

// A library call's only launch may run again if the call is repeatable.
bool MayRunAgain() {
  return library_call && library_call->works == 0 && library_call->claims->is_repeatable();
}

// A new kernel's effect is unknown. (Note [Pointer safety] in execute/state/pointer_safety.h)
// `dimensions` outlive the call.
void ScanLaunch(CUfunction function, const LaunchDimensions* dimensions, void** parameters,
                void** extra, Collector& add, WholeLaunch* launch = nullptr,
                const CUlaunchConfig* config = nullptr) {
  ScratchParameters scratch;
  const KernelFacts facts = FactsOf(function, &scratch);
  if (!facts.is_kept) {
    add.MarkUnsure();
  } else if (facts.is_new) {
    add.MarkNew(NoteFunctionScan, function);
  }
  add.SetLaunchShape(facts.name, dimensions);
  if (interposer::TraceIsOn()) add.SetTraceName(ReadableName(function, facts.name));
  if (launch && facts.is_kept && parameters && !extra) {
    launch->call.emplace(
        LaunchCall{function, *dimensions, parameters, facts.parameters->size_bytes, config, {}});
    add.SetLaunch(&*launch->call, MayRunAgain());
  }
  if (parameters) {
    interposer::UnreadParts* const unread = launch && launch->call ? &launch->unread : nullptr;
    if (unread) unread->clear();
    ScanParameters(*facts.parameters, parameters, {dimensions->grid_x, dimensions->grid_y}, add,
                   unread);
    if (unread) launch->call->unread = {unread->begin(), unread->size()};
  } else if (extra) {
    ScanExtra(*facts.parameters, extra, add);
  }
  if (!add.host_words().empty() && VisibleWork::ProgramActsInStreams()) add.MarkUnsure();
}

template <class Call>
CUresult AroundLaunch(CUfunction function, const LaunchDimensions& dimensions, StreamName stream,
                      void** parameters, void** extra, WholeLaunch* launch, Call call) {
  return Around(
      stream, Effect::kLaunches,
      [&](Collector& add) {
        ScanLaunch(function, &dimensions, parameters, extra, add, launch);
        add.TakeClaims();
      },
      call);
}

template <class Config>
LaunchDimensions DimensionsOf(const Config* config) {
  if (!config) return {};
  return {config->gridDimX,  config->gridDimY,  config->gridDimZ,      config->blockDimX,
          config->blockDimY, config->blockDimZ, config->sharedMemBytes};
}

// Only the access policy window names memory.
void AddAttributes(const CUlaunchConfig* config, Collector& add) {
  for (unsigned int i = 0; config && i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
      add(attribute.value.accessPolicyWindow.base_ptr);
  }
}

// For a call with several launches, each in its own stream: claims cannot be attributed to one of
// them. The caller holds an outermost guard.
template <class Call>
CUresult AroundEach(const CUDA_LAUNCH_PARAMS* launches, unsigned int count, Call& call) {
  if (count == 0) return call();
  const LaunchDimensions dimensions = DimensionsOf(launches);
  auto collect = [&](Collector& add) {
    ScanLaunch(launches->function, &dimensions, launches->kernelParams, nullptr, add);
  };
  auto others = [&] { return AroundEach(launches + 1, count - 1, call); };
  return internal::AroundJobs({launches->hStream, false}, Effect::kLaunches, collect, others);
}

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::AddAttributes;
using spillway::entry::Around;
using spillway::entry::AroundEach;
using spillway::entry::AroundLaunch;
using spillway::entry::Collector;
using spillway::entry::DimensionsOf;
using spillway::entry::Effect;
using spillway::entry::LaunchDimensions;
using spillway::entry::ReentryGuard;
using spillway::entry::ScanLaunch;
using spillway::entry::WholeLaunch;

#define SPILLWAY_LAUNCH_KERNEL(name, per_thread)                                                 \
  SPILLWAY_EXPORT CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, \
                                unsigned int bx, unsigned int by, unsigned int bz,               \
                                unsigned int shared, CUstream stream, void** parameters,         \
                                void** extra) {                                                  \
    const LaunchDimensions d = {gx, gy, gz, bx, by, bz, shared};                                 \
    WholeLaunch launch;                                                                          \
    return AroundLaunch(f, d, {stream, per_thread}, parameters, extra, &launch, [&] {            \
      return Driver().name(f, d.grid_x, d.grid_y, d.grid_z, d.block_x, d.block_y, d.block_z,     \
                           d.shared_bytes, stream, parameters, extra);                           \
    });                                                                                          \
  }
SPILLWAY_LAUNCH_KERNEL(cuLaunchKernel, false)
SPILLWAY_LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)

#define SPILLWAY_LAUNCH_KERNEL_EX(name, per_thread)                                               \
  SPILLWAY_EXPORT CUresult name(const CUlaunchConfig* config, CUfunction f, void** parameters,    \
                                void** extra) {                                                   \
    const CUstream stream = config ? config->hStream : nullptr;                                   \
    const LaunchDimensions dimensions = DimensionsOf(config);                                     \
    WholeLaunch launch;                                                                           \
    return Around(                                                                                \
        {stream, per_thread}, Effect::kLaunches,                                                  \
        [&](Collector& add) {                                                                     \
          ScanLaunch(f, &dimensions, parameters, extra, add, config ? &launch : nullptr, config); \
          AddAttributes(config, add);                                                             \
          add.TakeClaims();                                                                       \
        },                                                                                        \
        [&] { return Driver().name(config, f, parameters, extra); });                             \
  }
SPILLWAY_LAUNCH_KERNEL_EX(cuLaunchKernelEx, false)
SPILLWAY_LAUNCH_KERNEL_EX(cuLaunchKernelEx_ptsz, true)

#define SPILLWAY_LAUNCH_COOPERATIVE(name, per_thread)                                            \
  SPILLWAY_EXPORT CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, \
                                unsigned int bx, unsigned int by, unsigned int bz,               \
                                unsigned int shared, CUstream stream, void** parameters) {       \
    return AroundLaunch(                                                                         \
        f, {gx, gy, gz, bx, by, bz, shared}, {stream, per_thread}, parameters, nullptr, nullptr, \
        [&] { return Driver().name(f, gx, gy, gz, bx, by, bz, shared, stream, parameters); });   \
  }
SPILLWAY_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
SPILLWAY_LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

SPILLWAY_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches,
                                                              unsigned int count,
                                                              unsigned int flags) {
  const ReentryGuard guard;
  auto call = [&] { return Driver().cuLaunchCooperativeKernelMultiDevice(launches, count, flags); };
  if (!guard.IsOutermost() || !launches) return call();
  const spillway::interposer::TurnPass turn;
  const spillway::entry::BeginningJobs beginning;
  return AroundEach(launches, count, call);
}
