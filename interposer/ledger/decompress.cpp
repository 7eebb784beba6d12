#include "interposer/ledger/decompress.h"

#include <dlfcn.h>

#include <atomic>

#include "interposer/driver/real_dlsym.h"

namespace spillway::interposer {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;

constinit std::atomic<base::DecompressLz4> lz4{nullptr};
constinit std::atomic<base::DecompressZstd> zstd{nullptr};

// Bound to itself, as the program may have another version. Sanitizers forbid that.
template <class Function>
void Open(const char* name, const char* function, std::atomic<Function>* out) {
  if (out->load(std::memory_order_relaxed)) return;
  const bool is_sanitized = driver::RealDlsym()(RTLD_DEFAULT, "__sanitizer_print_stack_trace");
  void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | (is_sanitized ? 0 : RTLD_DEEPBIND));
  if (library)
    out->store(reinterpret_cast<Function>(driver::RealDlsym()(library, function)),
               std::memory_order_relaxed);
}

}  // namespace

void OpenDecompressors() {
  Open("libzstd.so.1", "ZSTD_decompress", &zstd);
  Open("liblz4.so.1", "LZ4_decompress_safe", &lz4);
}

std::optional<base::Decompressed> Decompress(const base::FatEntry& entry) {
  return base::Decompress(entry, lz4.load(std::memory_order_relaxed),
                          zstd.load(std::memory_order_relaxed), kMostBytes);
}

}  // namespace spillway::interposer
