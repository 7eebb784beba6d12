#include "interposer/execute/residency/mappings.h"

#include "interposer/driver/mapping_calls.h"

namespace spillway::interposer {

bool Mappings::Map(CUdeviceptr base, const Chunks& chunks, Users users) {
  size_t done_bytes = 0;
  for (const Chunk* chunk : chunks) {
    if (driver::MemMap(base + done_bytes, chunk->bytes, chunk->handle) != CUDA_SUCCESS) break;
    done_bytes += chunk->bytes;
  }
  size_t wanted_bytes = 0;
  for (const Chunk* chunk : chunks) wanted_bytes += chunk->bytes;
  if (done_bytes == wanted_bytes && AllowDevices(base, done_bytes, users)) return true;
  if (done_bytes) driver::MemUnmap(base, done_bytes);
  return false;
}

bool Mappings::MapHost(CUdeviceptr base, size_t bytes, const driver::HostMemory& host) {
  if (driver::MemMap(base, bytes, host.handle) != CUDA_SUCCESS) return false;
  if (AllowDevices(base, bytes, Users::kDeviceAndPeers)) return true;
  driver::MemUnmap(base, bytes);
  return false;
}

CUdeviceptr Mappings::MapAnew(size_t bytes, const Chunks& chunks) {
  const CUdeviceptr base = addresses_.Take(bytes);
  if (!base) return 0;
  if (Map(base, chunks)) return base;
  addresses_.Give(base, bytes);
  return 0;
}

bool Mappings::AllowDevices(CUdeviceptr base, size_t bytes, Users users) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (driver::MemSetAccess(base, bytes, &access, 1) != CUDA_SUCCESS) return false;
  if (users == Users::kDevice) return true;
  for (const CUdevice peer : peers_) SetPeerAt(base, bytes, peer, true);
  return true;
}

void Mappings::SetPeerAt(CUdeviceptr base, size_t bytes, CUdevice peer, bool allowed) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, peer};
  access.flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  driver::MemSetAccess(base, bytes, &access, 1);
}

void Mappings::SetPeer(CUdevice peer, bool allowed) {
  std::erase(peers_, peer);
  if (allowed) peers_.push_back(peer);
}

}  // namespace spillway::interposer
