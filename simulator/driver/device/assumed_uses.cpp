#include "simulator/driver/device/assumed_uses.h"

#include <algorithm>

namespace spillway::simulator {
namespace {

constexpr std::uint32_t kMostScalarBytes = 8;
constexpr std::uint32_t kMostTrustedBytes = 128;

class Hash {
 public:
  void Add(const void* data, std::size_t size_bytes) {
    const auto* const bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size_bytes; ++i) value_ = (value_ ^ bytes[i]) * 0x100000001b3;
  }
  void Add(std::uint64_t word) { Add(&word, sizeof word); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

void AddScalars(const DeclaredKernel::Launch& launch, Hash& hash) {
  for (std::uint32_t i = 0; i < launch.entry.parameter_count; ++i) {
    const KernelParameter& parameter = launch.entry.parameters[i];
    const bool names_memory =
        std::any_of(launch.named.begin(), launch.named.end(), [&](const NamedMemory& named) {
          return named.offset_bytes - parameter.offset_bytes < parameter.size_bytes;
        });
    const bool is_scalar =
        parameter.size_bytes >= kLeastScalarBytes && parameter.size_bytes <= kMostScalarBytes;
    if (is_scalar && !names_memory) hash.Add(launch.arguments[i], parameter.size_bytes);
  }
}

// Invariant 1
bool IsTrusted(const KernelEntry& entry, const NamedMemory& named) {
  for (std::uint32_t i = 0; i < entry.parameter_count; ++i) {
    const KernelParameter& parameter = entry.parameters[i];
    if (named.offset_bytes - parameter.offset_bytes < parameter.size_bytes)
      return parameter.size_bytes <= kMostTrustedBytes;
  }
  return false;
}

bool IsAmong(const std::vector<KernelUse>& uses, const NamedMemory& named) {
  return std::any_of(uses.begin(), uses.end(), [&](const KernelUse& use) {
    return reinterpret_cast<std::uintptr_t>(use.pointer) == named.base;
  });
}

}  // namespace

KernelEffect AssumeUses(const DeclaredKernel::Launch& launch) {
  KernelEffect assumed;
  Hash hash;
  hash.Add(launch.shape.grid, sizeof launch.shape.grid);
  hash.Add(launch.shape.block, sizeof launch.shape.block);
  AddScalars(launch, hash);
  for (const NamedMemory& named : launch.named) {
    if (!IsTrusted(launch.entry, named)) continue;
    hash.Add(named.offset_bytes);
    hash.Add(named.address - named.base);
    if (!IsAmong(assumed.uses, named))
      assumed.uses.push_back(
          {reinterpret_cast<void*>(named.base), named.size_bytes, UseKind::kUpdate});
  }
  assumed.identity = hash.value();
  return assumed;
}

}  // namespace spillway::simulator
