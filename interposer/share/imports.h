// Opens, maps and closes memory of other processes under Spillway, by its handle.
//
// Owns the addresses, the mappings, and the connections that tell exporters that memory is open.
// Invariants
//  1. A handle opened again in the same context gives the same address. The address ends when it
//     has been closed as often (cuIpcOpenMemHandle).
//  2. The connection ends after the mapping.
//  3. No lock is held while an exporter is awaited. Of two threads that open a handle at once, the
//     second gives its mapping up.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <optional>

#include "base/mutex.h"
#include "interposer/driver/cuda_abi.h"
#include "interposer/share/wire.h"

namespace spillway::interposer::share {

struct Extent {
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
};

class Imports {
 public:
  static Imports& Instance();

  // Whether the handle was made by Spillway, in any process.
  static bool Knows(const CUipcMemHandle& handle);
  CUresult Open(const CUipcMemHandle& handle, CUdeviceptr* out) SPILLWAY_EXCLUDES(mutex_);
  // False if Open did not give the address: the driver's then.
  bool Close(CUdeviceptr address, CUresult* result) SPILLWAY_EXCLUDES(mutex_);
  // Nothing for an address that Open did not give.
  std::optional<Extent> ExtentOf(CUdeviceptr address) SPILLWAY_EXCLUDES(mutex_);

 private:
  struct Opening {
    std::uint64_t token;
    CUcontext context;
    CUdeviceptr mapped;
    std::size_t mapped_bytes;
    std::size_t offset_bytes;
    std::size_t size_bytes;
    int connection;
    int references;
  };

  static CUresult Ask(const Handle& handle, CUcontext context, Opening* out);
  static void End(const Opening& opening);
  std::optional<CUdeviceptr> OpenAgain(std::uint64_t token, CUcontext context)
      SPILLWAY_REQUIRES(mutex_);

  base::Mutex mutex_{base::LockRank::kImports};
  std::map<CUdeviceptr, Opening> openings_ SPILLWAY_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
};

}  // namespace spillway::interposer::share
