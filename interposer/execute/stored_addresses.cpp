#include "interposer/execute/stored_addresses.h"

#include <algorithm>

#include "interposer/driver/driver_api.h"
#include "interposer/execute/state/ordering_rules.h"
#include "interposer/ledger/host_regions.h"
#include "interposer/ledger/libraries.h"
#include "interposer/ledger/tensor_maps.h"
#include "interposer/ledger/visible_work.h"

namespace spillway::interposer {

using driver::Driver;

namespace {

// Beyond this many addresses none is kept, and the job is unsafe.
constexpr size_t kMostHeld = size_t{1} << 17;

// Note [Words that lead nowhere yet]
// A copied word may name a place where something is allocated only later. Usually it is a number,
// and the copy explains it when a full scan meets it. But the program may know that its allocator
// reuses the place: then kernels follow the word. So it is kept like others, unless so many are
// kept that such data would leave no room for addresses. Device variables are the exception,
// because their words concern every launch.
constexpr size_t kMostLeadingNowhere = size_t{1} << 12;

}  // namespace

void StoredAddresses::Wrote(const Transfers& transfers, const TouchSet& set) {
  if (set.recorded) return;
  const Overwrite by{set.use.stream, set.use.sequence};
  for (const Transfer& transfer : transfers) {
    for (size_t row = 0; row < transfer.rows; ++row) {
      WroteRow(transfer, transfer.to + row * transfer.to_pitch_bytes,
               transfer.from + row * transfer.from_pitch_bytes, by);
    }
  }
}

void StoredAddresses::RegisterGlobal(CUdeviceptr base, size_t bytes, const void* module) {
  const StateLock lock(state_.locks);
  const Global global{base, bytes, module};
  if (std::find(globals_.begin(), globals_.end(), global) == globals_.end())
    globals_.push_back(global);
}

void StoredAddresses::ForgetGlobals(const void* module) {
  const MakingLock making(state_.locks);
  const StateLock lock(state_.locks);
  for (const Global& global : globals_) {
    if (global.module == module) state_.outside.Forget(global.base, global.bytes);
  }
  std::erase_if(globals_, [module](const Global& global) { return global.module == module; });
  state_.all_memory.Update();
}

bool StoredAddresses::WritesVariables(const Transfers& transfers) const {
  const StateLock lock(state_.locks);
  return std::any_of(transfers.begin(), transfers.end(),
                     [this](const Transfer& transfer)
                         SPILLWAY_REQUIRES(kStateLock) { return IsInGlobal(transfer.to); });
}

// It loads code, so only jobs that evict ask. The making lock keeps libraries loaded.
void StoredAddresses::FindVariables() {
  if (!Libraries::Instance().AnyBehind(libraries_found_)) return;
  for (const LoadedLibrary& library : Libraries::Instance().Behind(libraries_found_)) {
    for (const std::string& name : library.variables) {
      CUdeviceptr base = 0;
      size_t bytes = 0;
      if (Driver().cuLibraryGetGlobal(&base, &bytes, library.handle, name.c_str()) ==
              CUDA_SUCCESS &&
          base)
        RegisterGlobal(base, bytes, library.handle);
    }
    libraries_found_ = library.number;
  }
}

void StoredAddresses::ForgetHost(CUdeviceptr base, size_t bytes) {
  const StateLock lock(state_.locks);
  if (state_.outside.empty()) return;
  state_.outside.Forget(base, bytes);
  state_.all_memory.Update();
}

void StoredAddresses::ReadHostAt(CUdeviceptr word, TouchSet* set) const {
  if (!ordering_rules::kHostMemoryIsRead || !set->reads_host) return;
  for (const CUdeviceptr base : HostRegions::Instance().BasesNear(word))
    ReadHostPlace({base, word}, set);
}

void StoredAddresses::ReadHostPlace(HostRegions::Place place, TouchSet* set) const {
  for (const HostRegions::Place& before : set->host_places) {
    if (before.base != place.base) continue;
    if (before.is_read_whole || before.word == place.word) return;
    place.is_sampled = true;
  }
  place.in_full = set->awaits_scan;
  const HostRegions::Scan scan = HostRegions::Instance().Read(place, state_.Bounds());
  place.is_read_whole = scan.is_whole;
  set->host_places.push_back(place);
  set->held_on_host.insert(set->held_on_host.end(), scan.held.begin(), scan.held.end());
  set->host_is_unsure = set->host_is_unsure || !scan.is_readable;
  for (const HostRegions::Place& next : scan.leads_on) ReadHostPlace(next, set);
}

// A word that was not there before comes from the kernel, unless the program wrote it meanwhile.
bool StoredAddresses::FoundNewOnHost(const TouchSet& set) const {
  TouchSet now;
  now.reads_host = set.reads_host;
  now.awaits_scan = set.awaits_scan;
  for (const HostRegions::Place& place : set.host_places)
    ReadHostPlace({place.base, place.word}, &now);
  return std::any_of(now.held_on_host.begin(), now.held_on_host.end(), [&](const HeldWord& held) {
    return std::none_of(
        set.held_on_host.begin(), set.held_on_host.end(),
        [&](const HeldWord& before) { return before.at == held.at && before.word == held.word; });
  });
}

bool StoredAddresses::LeadsToHeldWords(CUdeviceptr word) const {
  TouchSet reach;
  reach.reads_host = true;
  ReadHostAt(word, &reach);
  return !reach.held_on_host.empty();
}

Contents& StoredAddresses::ContentsAt(CUdeviceptr address) {
  return state_.ledger.Find(address) ? state_.contents : state_.outside;
}

// Most payloads hold no address and overwrite none.
void StoredAddresses::WroteRow(const Transfer& transfer, CUdeviceptr to, CUdeviceptr from,
                               Overwrite by) {
  const size_t bytes = transfer.width_bytes;
  std::vector<HeldWord> found;
  if (transfer.source == Transfer::Source::kHost && ordering_rules::kPayloadsAreScanned) {
    const auto* const payload = reinterpret_cast<const void*>(from);
    const auto keep = [&](const HeldWord& held) { found.push_back(held); };
    ScanPayload(payload, bytes, to, state_.Bounds(), keep);
    ForEachTensorMap(payload, bytes, -to % kTensorMapAlignment,
                     [&](size_t offset, CUdeviceptr address) {
                       keep({to + offset, address});
                     });
    ScanPayload(payload, bytes, to, HostRegions::Bounds(), [&](const HeldWord& held) {
      if (!HostRegions::Instance().Holds(held.word)) return;
      VisibleWork::MakeAllWorkVisible();
      keep(held);
    });
  }
  const StateLock lock(state_.locks);
  if (found.empty() && state_.contents.empty() && state_.outside.empty()) return;
  Contents& contents = ContentsAt(to);
  if (transfer.source == Transfer::Source::kDevice && ordering_rules::kCopiesBringAddresses) {
    contents.Copy(to, ContentsAt(from), from, bytes, by);
  } else {
    contents.Erase(to, bytes, by);
  }
  PutAll(to, bytes, found);
}

void StoredAddresses::PutAll(CUdeviceptr to, size_t bytes, const std::vector<HeldWord>& found) {
  Contents& contents = ContentsAt(to);
  for (const HeldWord& held : found) {
    const size_t kept = state_.contents.size() + state_.outside.size();
    const bool leads_to_host = HostRegions::Instance().Holds(held.word);
    const bool is_followed = &contents == &state_.contents || IsInGlobal(held.at);
    const bool leads_nowhere =
        !state_.ledger.LeadsToAny(held.word) && !(leads_to_host && is_followed);
    if (leads_nowhere && (&contents == &state_.outside || kept >= kMostLeadingNowhere)) continue;
    if (kept >= kMostHeld) {
      state_.pointer_safety.MarkUnsafe(UnsafeReason::kTooManyAddresses);
      break;
    }
    contents.Put(held);
  }
  if (!contents.HoldsAny(to, bytes)) return;
  Allocation* const holder = state_.ledger.Find(to);
  if (!holder) return state_.all_memory.Update();
  auto* const tracked = static_cast<Tracked*>(holder);
  tracked->holds_addresses = true;
  tracked->fast_path.Close();
}

bool StoredAddresses::IsInGlobal(CUdeviceptr address) const {
  return std::any_of(globals_.begin(), globals_.end(), [address](const Global& global) {
    return address - global.base < global.bytes;
  });
}

}  // namespace spillway::interposer
