#include "simulator/driver/sparse_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace spillway::simulator {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kWindowPages = 8192;  // asked for at once: 32 MiB of addresses
// Below this the question costs more than the copy.
constexpr std::size_t kDenseBytes = 64 << 10;

// By address. Outlives every driver call.
std::map<std::uintptr_t, std::size_t>& FileMappings() {
  static auto* const mappings = new std::map<std::uintptr_t, std::size_t>;
  return *mappings;
}

// One entry per page; tells whether it exists.
class PageWindow {
 public:
  // Looks at `count` pages from the page of `first` on.
  void Look(std::uintptr_t first_page, std::size_t count) {
    constexpr std::uint64_t kPresentOrSwapped = std::uint64_t{3} << 62;
    exists_.assign(count, true);
    entries_.resize(count);
    static const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const std::size_t wanted = count * sizeof(std::uint64_t);
    const auto at = static_cast<off_t>(first_page * sizeof(std::uint64_t));
    if (file < 0 || pread(file, entries_.data(), wanted, at) != static_cast<ssize_t>(wanted)) return;
    for (std::size_t i = 0; i < count; ++i) exists_[i] = (entries_[i] & kPresentOrSwapped) != 0;
    AddFilePages(first_page, count);
  }

  bool operator[](std::size_t page) const { return exists_[page] != 0; }

 private:
  void AddFilePages(std::uintptr_t first_page, std::size_t count) {
    const std::uintptr_t end = (first_page + count) * kPage;
    auto mapping = FileMappings().upper_bound(first_page * kPage);
    if (mapping != FileMappings().begin()) --mapping;
    for (; mapping != FileMappings().end() && mapping->first < end; ++mapping) {
      const std::uintptr_t first = std::max(first_page, mapping->first / kPage);
      const std::uintptr_t last = std::min(end, mapping->first + mapping->second + kPage - 1) / kPage;
      if (first < last) AddResident(first, last - first, first - first_page);
    }
  }

  void AddResident(std::uintptr_t page, std::size_t count, std::size_t at) {
    resident_.resize(count);
    const bool told = mincore(reinterpret_cast<void*>(page * kPage), count * kPage, resident_.data()) == 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!told || (resident_[i] & 1) != 0) exists_[at + i] = 1;
    }
  }

  std::vector<std::uint64_t> entries_;
  std::vector<unsigned char> resident_;
  std::vector<char> exists_;
};

// Calls action(offset, size_bytes, exists) for runs of pages of [base, base + size_bytes), in order, all of it.
template <class Action>
void ForRuns(std::uintptr_t base, std::size_t size_bytes, PageWindow& window, Action action) {
  const std::uintptr_t end = base + size_bytes;
  for (std::uintptr_t at = base; at < end;) {
    const std::uintptr_t first_page = at / kPage;
    const std::size_t count = std::min<std::size_t>((end - 1) / kPage - first_page + 1, kWindowPages);
    window.Look(first_page, count);
    for (std::size_t i = 0; i < count;) {
      std::size_t next = i + 1;
      while (next < count && window[next] == window[i]) ++next;
      const std::uintptr_t run_end = std::min<std::uintptr_t>(end, (first_page + next) * kPage);
      action(at - base, run_end - at, window[i]);
      at = run_end;
      i = next;
    }
  }
}

// To bytes that are zero. Pages that were only read exist too and hold nothing: they make none at the target.
void CopyWhatIsNotZero(char* target, const char* source, std::size_t size_bytes) {
  static constexpr char kZeroes[kPage] = {};
  for (std::size_t done = 0; done < size_bytes; done += kPage) {
    const std::size_t bytes = std::min(kPage, size_bytes - done);
    if (std::memcmp(source + done, kZeroes, bytes) != 0) std::memcpy(target + done, source + done, bytes);
  }
}

// The same for clearing: a page that holds nothing stays as cheap as it is.
void ZeroPages(char* target, std::size_t size_bytes) {
  static constexpr char kZeroes[kPage] = {};
  for (std::size_t done = 0; done < size_bytes; done += kPage) {
    const std::size_t bytes = std::min(kPage, size_bytes - done);
    if (std::memcmp(target + done, kZeroes, bytes) != 0) std::memset(target + done, 0, bytes);
  }
}

bool Overlap(const void* a, const void* b, std::size_t size_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a);
  const auto second = reinterpret_cast<std::uintptr_t>(b);
  return first < second + size_bytes && second < first + size_bytes;
}

}  // namespace

void NoteFileMapping(std::uintptr_t base, std::size_t size_bytes) { FileMappings()[base] = size_bytes; }

void ForgetFileMapping(std::uintptr_t base) { FileMappings().erase(base); }

void SparseClear(void* target, std::size_t size_bytes) {
  if (size_bytes < kDenseBytes) {
    std::memset(target, 0, size_bytes);
    return;
  }
  static thread_local PageWindow window;
  ForRuns(reinterpret_cast<std::uintptr_t>(target), size_bytes, window,
          [&](std::size_t offset, std::size_t bytes, bool exists) {
            if (exists) ZeroPages(static_cast<char*>(target) + offset, bytes);
          });
}

void SparseCopy(void* target, const void* source, std::size_t size_bytes) {
  if (size_bytes < kDenseBytes || Overlap(target, source, size_bytes)) {
    std::memmove(target, source, size_bytes);
    return;
  }
  SparseClear(target, size_bytes);
  static thread_local PageWindow window;
  ForRuns(reinterpret_cast<std::uintptr_t>(source), size_bytes, window,
          [&](std::size_t offset, std::size_t bytes, bool exists) {
            if (exists)
              CopyWhatIsNotZero(static_cast<char*>(target) + offset,
                                static_cast<const char*>(source) + offset, bytes);
          });
}

}  // namespace spillway::simulator
