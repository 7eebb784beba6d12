#include "interposer/ledger/decompress.h"

#include <dlfcn.h>

#include <atomic>
#include <new>

#include "interposer/driver/real_dlsym.h"

namespace spillway::interposer {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

// lz4.h and zstd.h: stable since their first versions. Both answer how many bytes they made, or an
// error, which is no such number.
using DecompressLz4 = int (*)(const char* from, char* to, int from_bytes, int to_bytes);
using DecompressZstd = std::size_t (*)(void* to, std::size_t to_bytes, const void* from,
                                       std::size_t from_bytes);
constinit std::atomic<DecompressLz4> lz4{nullptr};
constinit std::atomic<DecompressZstd> zstd{nullptr};

// The program may have another version of its own, so the library is bound to itself. Sanitizers
// forbid that.
template <class Function>
void Open(const char* name, const char* function, std::atomic<Function>* out) {
  if (out->load(std::memory_order_relaxed)) return;
  const bool is_sanitized = driver::RealDlsym()(RTLD_DEFAULT, "__sanitizer_print_stack_trace");
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | (is_sanitized ? 0 : RTLD_DEEPBIND));
  if (library)
    out->store(reinterpret_cast<Function>(driver::RealDlsym()(library, function)),
               std::memory_order_relaxed);
}

bool Fill(const base::FatEntry& entry, const Decompressed& out) {
  if ((entry.flags & base::FatEntry::kZstd) != 0) {
    const DecompressZstd decompress = zstd.load(std::memory_order_relaxed);
    return decompress && decompress(out.bytes.get(), out.size, entry.payload.data(),
                                    entry.payload.size()) == out.size;
  }
  const DecompressLz4 decompress = lz4.load(std::memory_order_relaxed);
  return decompress &&
         decompress(entry.payload.data(), out.bytes.get(), static_cast<int>(entry.payload.size()),
                    static_cast<int>(out.size)) == static_cast<int>(out.size);
}

}  // namespace

void OpenDecompressors() {
  Open("libzstd.so.1", "ZSTD_decompress", &zstd);
  Open("liblz4.so.1", "LZ4_decompress_safe", &lz4);
}

std::optional<Decompressed> Decompress(const base::FatEntry& entry) {
  const std::size_t size = entry.original_bytes;
  if (size == 0 || size > kMostBytes || entry.payload.size() > kMostBytes) return std::nullopt;
  // Not cleared: memory that a hostile length asks for in vain is never touched.
  Decompressed out{std::unique_ptr<char[]>(new (std::nothrow) char[size]), size};
  if (!out.bytes || !Fill(entry, out)) return std::nullopt;
  return out;
}

}  // namespace spillway::interposer
