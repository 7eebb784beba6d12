#include "interposer/entry/pool_charges.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/entry/pass_through.h"
#include "interposer/ledger/pools.h"

namespace spillway::entry {
namespace {

using driver::Driver;
using interposer::JobMemory;

cuuint64_t Ask(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t bytes = 0;
  Driver().cuMemPoolGetAttribute(pool, attribute, &bytes);
  return bytes;
}

size_t SpareBytes(CUmemoryPool pool) {
  const cuuint64_t reserved_bytes = Ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  return reserved_bytes - std::min(reserved_bytes, Ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
}

}  // namespace

void SettlePoolCharges() {
  for (const CUmemoryPool pool : interposer::Pools::Instance().Drivers()) {
    const size_t spare_bytes = SpareBytes(pool);
    interposer::FindJob([&](JobMemory* job) {
      const size_t charged_bytes = job->charges().TakePassedThrough(NameOf(pool));
      const size_t kept_bytes = std::min(charged_bytes, spare_bytes);
      AddToPool(job, pool, kept_bytes);
      if (charged_bytes > kept_bytes) job->charges().Discharge(charged_bytes - kept_bytes);
      return charged_bytes > 0;
    });
  }
}

}  // namespace spillway::entry
