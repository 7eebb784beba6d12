#include "interposer/record/call_sites.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>

#include "interposer/config/config.h"
#include "interposer/driver/real_dlsym.h"

// The linker's bounds of the library that contains this code.
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

namespace spillway::interposer::call_sites {
namespace {

constexpr size_t kAlwaysSampledBytes = size_t{64} << 20;
constexpr int kMostFrames = 32;
constexpr int kKeyFrames = 6;  // calls with so many frames in common have one site

struct Entry {
  std::atomic<size_t> key{0};
  std::atomic<std::uint64_t> bytes{0}, allocations{0};
  std::atomic<bool> named{false};
  std::uint64_t offset = 0;
  char library[128] = {};
  char function[192] = {};
};

constinit Entry entries[kMostSites];
constinit std::atomic<std::uint64_t> seen{0}, sampled{0}, sampled_bytes{0};

// int unw_backtrace(void** buffer, int size): return addresses, innermost first.
using Backtrace = int (*)(void**, int);
int NoBacktrace(void**, int) { return 0; }
constinit std::atomic<Backtrace> known_backtrace{nullptr};

Backtrace FindBacktrace() {
  for (const char* name : {"libunwind.so.8", "libunwind.so.1"}) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    void* const found =
        library != nullptr ? driver::RealDlsym()(library, "unw_backtrace") : nullptr;
    if (found != nullptr) return reinterpret_cast<Backtrace>(found);
  }
  return &NoBacktrace;
}

Backtrace KnownBacktrace() {
  Backtrace known = known_backtrace.load(std::memory_order_acquire);
  if (known == nullptr) {
    known = FindBacktrace();
    known_backtrace.store(known, std::memory_order_release);
  }
  return known;
}

bool IsOurs(const void* address) {
  const auto* const place = static_cast<const char*>(address);
  return place >= __ehdr_start && place < _end;
}

struct Stack {
  void* frames[kMostFrames];
  int count = 0;
};

// From the hook's caller outwards.
Stack Walk(void* caller) {
  Stack stack;
  void* all[kMostFrames];
  const int count = KnownBacktrace()(all, kMostFrames);
  for (int i = 0; i < count; ++i) {
    if (!IsOurs(all[i])) stack.frames[stack.count++] = all[i];
  }
  if (stack.count == 0) stack.frames[stack.count++] = caller;
  return stack;
}

const char* BaseName(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// The driver and its runtime, even if linked into the program.
bool IsCuda(const Dl_info& place) {
  const char* const library = BaseName(place.dli_fname);
  if (strncmp(library, "libcuda.so", 10) == 0 || strncmp(library, "libcudart.so", 12) == 0)
    return true;
  return place.dli_sname != nullptr && strncmp(place.dli_sname, "cuda", 4) == 0;
}

void Name(const Stack& stack, Entry* entry) {
  Dl_info place{};
  const void* owner = nullptr;
  for (int i = 0; i < stack.count; ++i) {
    Dl_info info;
    if (dladdr(stack.frames[i], &info) == 0) continue;
    const bool is_first = owner == nullptr;
    if (!is_first && IsCuda(info)) continue;
    place = info;
    owner = stack.frames[i];
    if (!IsCuda(info)) break;
  }
  if (owner == nullptr) owner = place.dli_fbase;
  const void* const base = place.dli_saddr != nullptr ? place.dli_saddr : place.dli_fbase;
  entry->offset =
      static_cast<std::uint64_t>(static_cast<const char*>(owner) - static_cast<const char*>(base));
  snprintf(entry->library, sizeof entry->library, "%s",
           place.dli_fname == nullptr ? "" : place.dli_fname);
  snprintf(entry->function, sizeof entry->function, "%s",
           place.dli_sname == nullptr ? "" : place.dli_sname);
  entry->named.store(true, std::memory_order_release);
}

size_t KeyOf(const Stack& stack) {
  size_t key = 0;
  for (int i = 0; i < std::min(stack.count, kKeyFrames); ++i)
    key = (key ^ reinterpret_cast<size_t>(stack.frames[i])) * 0x9e3779b97f4a7c15u;
  return key | 1;
}

// Null if the table is full.
Entry* EntryOf(const Stack& stack) {
  const size_t key = KeyOf(stack);
  for (size_t step = 0; step < kMostSites; ++step) {
    Entry* const entry = &entries[((key >> 32) + step) % kMostSites];
    size_t found = 0;
    if (entry->key.compare_exchange_strong(found, key, std::memory_order_relaxed))
      Name(stack, entry);
    if (found == 0 || found == key) return entry;
  }
  return nullptr;
}

bool IsSameSite(const Site& site, const Entry& entry) {
  return site.offset == entry.offset && strcmp(site.function, entry.function) == 0 &&
         strcmp(site.library, entry.library) == 0;
}

void Add(const Entry& entry, Site* sites, size_t* count) {
  Site* const end = sites + *count;
  Site* const same =
      std::find_if(sites, end, [&](const Site& site) { return IsSameSite(site, entry); });
  if (same == end) sites[(*count)++] = {entry.library, entry.function, entry.offset, 0, 0};
  same->bytes += entry.bytes.load(std::memory_order_relaxed);
  same->allocations += entry.allocations.load(std::memory_order_relaxed);
}

}  // namespace

void Sample(size_t bytes, void* caller) {
  const std::uint64_t every = ProcessConfig().call_sites_every.value_or(0);
  if (every == 0) return;
  const bool is_due = seen.fetch_add(1, std::memory_order_relaxed) % every == 0;
  if (!is_due && bytes < kAlwaysSampledBytes) return;
  sampled.fetch_add(1, std::memory_order_relaxed);
  sampled_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (Entry* const entry = EntryOf(Walk(caller))) {
    entry->bytes.fetch_add(bytes, std::memory_order_relaxed);
    entry->allocations.fetch_add(1, std::memory_order_relaxed);
  }
}

std::optional<Summary> Read() {
  const Backtrace used = known_backtrace.load(std::memory_order_acquire);
  if (used == nullptr) return {};
  return Summary{.source = used == &NoBacktrace ? "return addresses" : "libunwind",
                 .every = ProcessConfig().call_sites_every.value_or(0),
                 .bytes = sampled_bytes.load(std::memory_order_relaxed),
                 .allocations = sampled.load(std::memory_order_relaxed)};
}

// `sites` is not on the stack, which may be a signal handler's.
size_t Top(Site* out, size_t most) {
  static constinit Site sites[kMostSites] = {};
  size_t count = 0;
  for (const Entry& entry : entries) {
    if (entry.named.load(std::memory_order_acquire)) Add(entry, sites, &count);
  }
  const size_t shown = std::min(count, most);
  std::partial_sort(sites, sites + shown, sites + count,
                    [](const Site& a, const Site& b) { return a.bytes > b.bytes; });
  std::copy(sites, sites + shown, out);
  return shown;
}

}  // namespace spillway::interposer::call_sites
