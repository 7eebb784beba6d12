// Note [Textures hold]
// A kernel reads a texture by a handle. It may come as a parameter, in a struct, in device memory
// or in a module's variable. On today's drivers handles are small integers, so no scan can tell
// them from other numbers. Hence every launch is assumed to use every texture. The memory is held
// from the object's creation to its destruction, at no cost for launches. Arrays never move. A
// texture that does not fit the budget beside all held memory is refused as out of memory.
#include "interposer/driver/driver_api.h"
#include "interposer/entry/around.h"
#include "interposer/entry/export.h"
#include "interposer/execute/state/ordering_rules.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::Holds;
using interposer::Unmovable;
namespace ordering_rules = interposer::ordering_rules;

CUdeviceptr LinearMemory(const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType == CU_RESOURCE_TYPE_LINEAR) return resource.res.linear.devPtr;
  return resource.resType == CU_RESOURCE_TYPE_PITCH2D ? resource.res.pitch2D.devPtr : 0;
}

// `owner()` returns its number afterwards.
template <class Owner, class Call>
CUresult Hold(CUdeviceptr address, Owner owner, Call call) {
  if (interposer::HostRegions::Instance().Holds(address))
    interposer::VisibleWork::MakeAllWorkVisible();
  return Around(
      {nullptr, false}, Effect::kReads, [address](Collector& add) { add(address); },
      [&] {
        const CUresult result = call();
        JobMemory* const job = result == CUDA_SUCCESS ? interposer::JobOwning(address) : nullptr;
        const bool held = job && ordering_rules::kTexturesHold;
        if (held) job->held_ranges().Hold(owner(), address, Unmovable::kTexture);
        return result;
      });
}

template <class Call>
CUresult Release(std::uint64_t owner, Call call) {
  const ReentryGuard guard;
  if (!guard.IsOutermost()) return call();
  std::vector<std::pair<JobMemory*, Holds::Held>> taken;
  ForEachJob([&](JobMemory* job) {
    if (const Holds::Held held = job->held_ranges().TakeHold(owner); held.range)
      taken.emplace_back(job, held);
  });
  const CUresult result = call();
  for (const auto& [job, held] : taken)
    result == CUDA_SUCCESS ? job->held_ranges().EndHold(held)
                           : job->held_ranges().PutHoldBack(owner, held);
  return result;
}

std::uint64_t OwnerOf(CUtexref reference) { return reinterpret_cast<std::uint64_t>(reference); }

}  // namespace
}  // namespace spillway::entry

using spillway::driver::Driver;
using spillway::entry::Hold;
using spillway::entry::OwnerOf;
using spillway::entry::Release;

// A surface's array never moves. But a kernel writes it by a handle, which no experiment sees, and
// reads a texture's.
SPILLWAY_EXPORT CUresult cuSurfObjectCreate(CUsurfObject* surface,
                                            const CUDA_RESOURCE_DESC* resource) {
  spillway::interposer::VisibleWork::NoteTextures();
  return Driver().cuSurfObjectCreate(surface, resource);
}
SPILLWAY_EXPORT CUresult cuModuleGetSurfRef(CUsurfref* surface, CUmodule module, const char* name) {
  spillway::interposer::VisibleWork::NoteTextures();
  return Driver().cuModuleGetSurfRef(surface, module, name);
}

SPILLWAY_EXPORT CUresult cuTexObjectCreate(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                           const CUDA_TEXTURE_DESC* texture,
                                           const CUDA_RESOURCE_VIEW_DESC* view) {
  spillway::interposer::VisibleWork::NoteTextures();
  const auto call = [&] { return Driver().cuTexObjectCreate(object, resource, texture, view); };
  const CUdeviceptr address = object && resource ? spillway::entry::LinearMemory(*resource) : 0;
  return address ? Hold(
                       address, [object] { return *object; }, call)
                 : call();
}

SPILLWAY_EXPORT CUresult cuTexObjectDestroy(CUtexObject object) {
  return Release(object, [object] { return Driver().cuTexObjectDestroy(object); });
}

#define SPILLWAY_TEXTURE_REFERENCE(name, parameters, arguments)                                \
  SPILLWAY_EXPORT CUresult name parameters {                                                   \
    spillway::interposer::VisibleWork::NoteTextures();                                         \
    return Hold(                                                                               \
        address, [&] { return OwnerOf(reference); }, [&] { return Driver().name arguments; }); \
  }
SPILLWAY_TEXTURE_REFERENCE(cuTexRefSetAddress_v2,
                           (size_t * offset, CUtexref reference, CUdeviceptr address, size_t bytes),
                           (offset, reference, address, bytes))
SPILLWAY_TEXTURE_REFERENCE(cuTexRefSetAddress2D_v2,
                           (CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* descriptor,
                            CUdeviceptr address, size_t pitch),
                           (reference, descriptor, address, pitch))
SPILLWAY_TEXTURE_REFERENCE(cuTexRefSetAddress2D_v3,
                           (CUtexref reference, const CUDA_ARRAY_DESCRIPTOR* descriptor,
                            CUdeviceptr address, size_t pitch),
                           (reference, descriptor, address, pitch))
SPILLWAY_EXPORT CUresult cuTexRefDestroy(CUtexref reference) {
  return Release(OwnerOf(reference), [reference] { return Driver().cuTexRefDestroy(reference); });
}
