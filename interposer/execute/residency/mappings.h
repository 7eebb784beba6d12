// What is mapped at the job's addresses, and which devices may use it.
//
// Called by residency's classes with the state lock held. Owns the addresses. Knows no ranges.
// Invariant: whatever is mapped may be used by the job's device and by all its peers; the program's
// own memory by the device alone (cuCtxEnablePeerAccess does not cover it).
// Never: waits. The caller knows that nothing uses what it unmaps.
#pragma once

#include <cstdint>
#include <vector>

#include "interposer/driver/address_arena.h"
#include "interposer/driver/chunk_pool.h"
#include "interposer/driver/host_memory.h"

namespace spillway::interposer {

class Mappings {
 public:
  explicit Mappings(int device) : device_(device) {}

  // Addresses without a mapping; 0: there are none left.
  CUdeviceptr TakeAddresses(size_t bytes) { return addresses_.Take(bytes); }
  // What was taken, or one of the parts that it was cut into: `is_inner`: not the last one.
  void GiveAddresses(CUdeviceptr base, size_t bytes, bool is_inner = false) {
    is_inner ? addresses_.GivePart(base, bytes) : addresses_.Give(base, bytes);
  }
  bool OwnsAddress(CUdeviceptr address) const { return addresses_.Owns(address); }

  enum class Users : std::uint8_t { kDeviceAndPeers, kDevice };
  // False: nothing is mapped.
  bool Map(CUdeviceptr base, const Chunks& chunks, Users users = Users::kDeviceAndPeers);
  bool MapHost(CUdeviceptr base, size_t bytes, const driver::HostMemory& host);
  // At new addresses; 0: nothing is mapped.
  CUdeviceptr MapAnew(size_t bytes, const Chunks& chunks);

  // For what is mapped from now on. The caller changes what is mapped already.
  void SetPeer(CUdevice peer, bool allowed);
  static void SetPeerAt(CUdeviceptr base, size_t bytes, CUdevice peer, bool allowed);

  void ReleaseAll() { addresses_.ReleaseAll(); }

 private:
  bool AllowDevices(CUdeviceptr base, size_t bytes, Users users);

  const int device_;
  AddressArena addresses_;
  std::vector<CUdevice> peers_;
};

}  // namespace spillway::interposer
