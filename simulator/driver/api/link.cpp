#include "base/file.h"
#include "simulator/driver/calls/call.h"
#include "simulator/driver/calls/module_link.h"

namespace spillway::simulator {
namespace {

CUlinkState Handle(ModuleLink* link) { return reinterpret_cast<CUlinkState>(link); }

ModuleLink& LinkOf(Call& call, CUlinkState handle) {
  const auto found = call.sim.links.find(reinterpret_cast<ModuleLink*>(handle));
  Require(found != call.sim.links.end(), CUDA_ERROR_INVALID_HANDLE);
  return *found->second;
}

CUresult Create(unsigned count, const CUjit_option* options, void** values, CUlinkState* out) {
  return WithContext([&](Call& call) {
    Require(out != nullptr);
    auto link = std::make_unique<ModuleLink>(ModuleLink{JitReport(count, options, values)});
    *out = Handle(link.get());
    call.sim.links.emplace(link.get(), std::move(link));
  });
}

void Add(Call& call, CUlinkState handle, CUjitInputType type, base::ByteView input,
         const char* name) {
  const Profile& profile = call.sim.profile;
  LinkOf(call, handle).Add(type, input, profile.compute_major * 10 + profile.compute_minor, name);
}

CUresult AddData(CUlinkState handle, CUjitInputType type, const void* data, std::size_t bytes,
                 const char* name) {
  return WithContext([&](Call& call) {
    Require(data != nullptr && bytes != 0);
    Add(call, handle, type, base::ByteView(data, bytes), name);
  });
}

CUresult AddFile(CUlinkState handle, CUjitInputType type, const char* path) {
  return WithContext([&](Call& call) {
    Require(path != nullptr);
    const base::Result<std::string> bytes = base::ReadFile(path);
    Require(bytes.ok(), CUDA_ERROR_FILE_NOT_FOUND);
    Add(call, handle, type, base::ByteView(bytes->data(), bytes->size()), path);
  });
}

}  // namespace
}  // namespace spillway::simulator

using namespace spillway::simulator;

SIM_API(cuLinkCreate)
(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  return Create(count, options, values, out);
}
SIM_API(cuLinkCreate_v2)
(unsigned int count, CUjit_option* options, void** values, CUlinkState* out) {
  return Create(count, options, values, out);
}

// Options of a single input change nothing here.
SIM_API(cuLinkAddData)
(CUlinkState link, CUjitInputType type, void* data, size_t bytes, const char* name, unsigned int,
 CUjit_option*, void**) {
  return AddData(link, type, data, bytes, name);
}
SIM_API(cuLinkAddData_v2)
(CUlinkState link, CUjitInputType type, void* data, size_t bytes, const char* name, unsigned int,
 CUjit_option*, void**) {
  return AddData(link, type, data, bytes, name);
}
SIM_API(cuLinkAddFile)
(CUlinkState link, CUjitInputType type, const char* path, unsigned int, CUjit_option*, void**) {
  return AddFile(link, type, path);
}
SIM_API(cuLinkAddFile_v2)
(CUlinkState link, CUjitInputType type, const char* path, unsigned int, CUjit_option*, void**) {
  return AddFile(link, type, path);
}

SIM_API(cuLinkComplete)(CUlinkState handle, void** image, size_t* bytes) {
  return WithContext([&](Call& call) {
    Require(image != nullptr);
    ModuleLink& link = LinkOf(call, handle);
    link.Complete();
    *image = link.image.data();
    if (bytes != nullptr) *bytes = link.image.size() + 1;
  });
}

SIM_API(cuLinkDestroy)(CUlinkState handle) {
  return WithContext([&](Call& call) { call.sim.links.erase(&LinkOf(call, handle)); });
}
