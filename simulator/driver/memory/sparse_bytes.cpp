#include "simulator/driver/memory/sparse_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace spillway::simulator {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kWindowPages = 8192;  // queried at once: 32 MiB of addresses
// Below this a query costs more than the copy.
constexpr std::size_t kDenseBytes = 64 << 10;
// Programs read much memory through buffers of a few megabytes. Device memory in a file does not
// keep its pages: they fault after each mapping anyway.
constexpr std::size_t kKeptBytes = 4 << 20;

enum class Backing {
  kUnknown,    // of the program
  kSomeFile,   // may be a file that other processes write too
  kAnonymous,  // private memory of a block
  kBlockFile,
};

struct Region {
  std::uintptr_t end = 0;
  Backing backing = Backing::kUnknown;
  int file = -1;  // of kBlockFile, from its beginning
  bool on_host = false;
};

// By address, disjoint. Outlives every driver call.
std::map<std::uintptr_t, Region>& Regions() {
  static auto* const regions = new std::map<std::uintptr_t, Region>;
  return *regions;
}

struct Stretch {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::uintptr_t base;
  Backing backing;
  int file;
  bool on_host;
};

// Neighbouring private blocks form one stretch.
Stretch StretchFrom(std::uintptr_t at, std::uintptr_t end) {
  auto next = Regions().upper_bound(at);
  const auto found = next == Regions().begin() ? Regions().end() : std::prev(next);
  if (found == Regions().end() || found->second.end <= at) {
    if (next != Regions().end()) end = std::min(end, next->first);
    return {at, end, at, Backing::kUnknown, -1, false};
  }
  const Region& region = found->second;
  std::uintptr_t stretch_end = region.end;
  const auto goes_on = [&] {
    return next != Regions().end() && next->first == stretch_end &&
           next->second.backing == region.backing;
  };
  if (region.backing == Backing::kAnonymous) {
    for (; stretch_end < end && goes_on(); ++next) stretch_end = next->second.end;
  }
  return {
      at, std::min(end, stretch_end), found->first, region.backing, region.file, region.on_host};
}

class PageWindow {
 public:
  void Look(std::uintptr_t first_page, std::size_t count, bool of_a_file) {
    constexpr std::uint64_t kPresentOrSwapped = std::uint64_t{3} << 62;
    exists_.assign(count, true);
    entries_.resize(count);
    static const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const std::size_t wanted = count * sizeof(std::uint64_t);
    const auto at = static_cast<off_t>(first_page * sizeof(std::uint64_t));
    if (pagemap < 0 || pread(pagemap, entries_.data(), wanted, at) != static_cast<ssize_t>(wanted))
      return;
    for (std::size_t i = 0; i < count; ++i) exists_[i] = (entries_[i] & kPresentOrSwapped) != 0;
    if (of_a_file) AddResident(first_page, count);
  }

  std::size_t RunEnd(std::size_t page) const {
    const auto first = exists_.begin() + static_cast<std::ptrdiff_t>(page);
    return static_cast<std::size_t>(std::find(first, exists_.end(), *first == 0 ? 1 : 0) -
                                    exists_.begin());
  }
  bool operator[](std::size_t page) const { return exists_[page] != 0; }

 private:
  void AddResident(std::uintptr_t page, std::size_t count) {
    resident_.resize(count);
    const bool told =
        mincore(reinterpret_cast<void*>(page * kPage), count * kPage, resident_.data()) == 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!told || (resident_[i] & 1) != 0) exists_[i] = 1;
    }
  }

  std::vector<std::uint64_t> entries_;
  std::vector<unsigned char> resident_;
  std::vector<char> exists_;
};

template <class Action>
void ForPages(const Stretch& stretch, Action action) {
  static thread_local PageWindow window;
  for (std::uintptr_t at = stretch.begin; at < stretch.end;) {
    const std::uintptr_t first_page = at / kPage;
    const std::size_t count =
        std::min<std::size_t>((stretch.end - 1) / kPage - first_page + 1, kWindowPages);
    window.Look(first_page, count, stretch.backing == Backing::kSomeFile);
    for (std::size_t i = 0, next = 0; i < count; i = next) {
      next = window.RunEnd(i);
      const std::uintptr_t run_end =
          std::min<std::uintptr_t>(stretch.end, (first_page + next) * kPage);
      if (window[i]) action(at, run_end);
      at = run_end;
    }
  }
}

template <class Action>
void ForData(const Stretch& stretch, Action action) {
  const auto offset = [&](std::uintptr_t address) {
    return static_cast<off_t>(address - stretch.base);
  };
  const auto address = [&](off_t at) { return stretch.base + static_cast<std::uintptr_t>(at); };
  for (std::uintptr_t at = stretch.begin; at < stretch.end;) {
    const off_t data = lseek(stretch.file, offset(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return;
    const off_t hole = data < 0 ? -1 : lseek(stretch.file, data, SEEK_HOLE);
    const std::uintptr_t begin = data < 0 ? at : std::max(at, address(data));
    const std::uintptr_t end = hole < 0 ? stretch.end : std::min(stretch.end, address(hole));
    if (begin < end) action(begin, end);
    at = std::max(begin, end);
  }
}

template <class Action>
void ForExisting(const Stretch& stretch, Action action) {
  stretch.backing == Backing::kBlockFile ? ForData(stretch, action) : ForPages(stretch, action);
}

template <class Action>
void ForStretches(std::uintptr_t base, std::size_t size_bytes, Action action) {
  const std::uintptr_t end = base + size_bytes;
  for (std::uintptr_t at = base; at < end;) {
    const Stretch stretch = StretchFrom(at, end);
    action(stretch);
    at = stretch.end;
  }
}

bool Punch(std::uintptr_t begin, std::uintptr_t end, const Stretch& stretch) {
  return fallocate(stretch.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(begin - stretch.base), static_cast<off_t>(end - begin)) == 0;
}

// The kernel looks through every mapping of what is punched, so only data is; after kMostRuns all
// of the rest.
bool PunchData(std::uintptr_t begin, std::uintptr_t end, const Stretch& stretch) {
  constexpr int kMostRuns = 8;
  Stretch rest = stretch;
  rest.begin = begin;
  rest.end = end;
  int runs = 0;
  bool is_done = true;
  ForData(rest, [&](std::uintptr_t run_begin, std::uintptr_t run_end) {
    if (++runs > kMostRuns) return;
    is_done = is_done && Punch(run_begin, runs == kMostRuns ? end : run_end, stretch);
  });
  return is_done;
}

bool GiveBack(std::uintptr_t begin, std::uintptr_t end, const Stretch& stretch) {
  if (stretch.backing == Backing::kAnonymous)
    return madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) == 0;
  return stretch.backing == Backing::kBlockFile && PunchData(begin, end, stretch);
}

void Fill(std::uintptr_t begin, std::uintptr_t end) {
  std::memset(reinterpret_cast<void*>(begin), 0, end - begin);
}

bool ReleasePages(const Stretch& stretch) {
  const std::uintptr_t first = (stretch.begin + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = stretch.end / kPage * kPage;
  const bool is_dense = stretch.backing == Backing::kBlockFile && !stretch.on_host;
  const std::size_t kept_bytes = is_dense ? kDenseBytes : kKeptBytes;
  if (stretch.end - stretch.begin <= kept_bytes || !GiveBack(first, last, stretch)) return false;
  Fill(stretch.begin, first);
  Fill(last, stretch.end);
  return true;
}

void Clear(const Stretch& stretch) {
  if (!ReleasePages(stretch)) ForExisting(stretch, Fill);
}

// The target is zero. False: the source is all zero.
bool CopyNonZeroPages(char* target, const char* source, std::size_t size_bytes) {
  static constexpr char kZeroes[kPage] = {};
  bool any = false;
  for (std::size_t done = 0; done < size_bytes; done += kPage) {
    const std::size_t bytes = std::min(kPage, size_bytes - done);
    if (std::memcmp(source + done, kZeroes, bytes) == 0) continue;
    std::memcpy(target + done, source + done, bytes);
    any = true;
  }
  return any;
}

bool Overlap(const void* a, const void* b, std::size_t size_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a);
  const auto second = reinterpret_cast<std::uintptr_t>(b);
  return first < second + size_bytes && second < first + size_bytes;
}

}  // namespace

void NoteBlockMapping(std::uintptr_t base, std::size_t size_bytes, int file, bool on_host) {
  Regions()[base] = {base + size_bytes, file < 0 ? Backing::kAnonymous : Backing::kBlockFile, file,
                     on_host};
}

void NoteFileMapping(std::uintptr_t base, std::size_t size_bytes) {
  Regions()[base] = {base + size_bytes, Backing::kSomeFile};
}

void ForgetMapping(std::uintptr_t base) { Regions().erase(base); }

void SparseClear(void* target, std::size_t size_bytes) {
  if (size_bytes < kDenseBytes) {
    std::memset(target, 0, size_bytes);
    return;
  }
  ForStretches(reinterpret_cast<std::uintptr_t>(target), size_bytes, Clear);
}

void SparseCopy(void* target, const void* source, std::size_t size_bytes) {
  if (size_bytes < kDenseBytes || Overlap(target, source, size_bytes)) {
    std::memmove(target, source, size_bytes);
    return;
  }
  SparseClear(target, size_bytes);
  const auto base = reinterpret_cast<std::uintptr_t>(source);
  ForStretches(base, size_bytes, [&](const Stretch& stretch) {
    const auto copy = [&](std::uintptr_t begin, std::uintptr_t end) {
      const bool any = CopyNonZeroPages(static_cast<char*>(target) + (begin - base),
                                        reinterpret_cast<const char*>(begin), end - begin);
      if (!any)
        ReleasePages({begin, end, stretch.base, stretch.backing, stretch.file, stretch.on_host});
    };
    ForExisting(stretch, copy);
  });
}

// A stretch without pages may be forbidden memory, so its first byte is read. Where nothing is
// known, nothing may be mapped.
void ForWritten(const void* base, std::uint64_t size_bytes,
                void (*visit)(void* context, const void* begin, const void* end), void* context) {
  const auto pass_on = [&](std::uintptr_t begin, std::uintptr_t end) {
    visit(context, reinterpret_cast<const void*>(begin), reinterpret_cast<const void*>(end));
  };
  ForStretches(reinterpret_cast<std::uintptr_t>(base), size_bytes, [&](const Stretch& stretch) {
    const bool is_dense = stretch.backing == Backing::kUnknown || size_bytes < kDenseBytes;
    if (is_dense) return pass_on(stretch.begin, stretch.end);
    static_cast<void>(*reinterpret_cast<const volatile char*>(stretch.begin));
    ForExisting(stretch, pass_on);
  });
}

}  // namespace spillway::simulator
