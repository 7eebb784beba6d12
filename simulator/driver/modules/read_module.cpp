#include "simulator/driver/modules/read_module.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/code_object.h"
#include "base/fat_binary.h"
#include "simulator/driver/modules/code_object_list.h"
#include "simulator/driver/modules/decompress.h"
#include "simulator/driver/modules/ptx_list.h"

namespace spillway::simulator {
namespace {

using base::ByteView;
using base::CodeObject;
using base::FatContainer;
using base::FatEntry;

// 0: not readable. (Invariant 2)
std::uint32_t Preference(const FatEntry& entry, int architecture) {
  constexpr std::uint32_t kAny = 1, kAnyObject = 1 << 16, kFitting = 1 << 17;
  if (entry.kind == FatEntry::kPtx) return kAny;
  if (entry.kind != FatEntry::kCodeObject) return 0;
  const bool fits = entry.architecture <= static_cast<std::uint32_t>(architecture);
  return fits ? kFitting + entry.architecture : kAnyObject;
}

std::optional<ModuleList> ReadPayload(ByteView payload, std::uint16_t kind) {
  if (kind == FatEntry::kPtx) return ListPtx(payload.text().substr(0, payload.text().find('\0')));
  return ListCodeObject(payload);
}

std::optional<ModuleList> ReadEntry(const FatEntry& entry) {
  if (!entry.IsCompressed()) return ReadPayload(entry.payload, entry.kind);
  const auto decompressed = Decompress(entry);
  if (!decompressed) return std::nullopt;
  return ReadPayload(decompressed->view(), entry.kind);
}

// Containers of intermediate code for the linker list nothing.
std::optional<ModuleList> ReadContainer(const FatContainer& container, int architecture) {
  FatEntry best;
  std::uint32_t preference = 0;
  const bool is_whole = container.ForEntries([&](const FatEntry& entry) {
    const std::uint32_t own = Preference(entry, architecture);
    if (own <= preference) return;
    preference = own;
    best = entry;
  });
  if (!is_whole) return std::nullopt;
  return preference == 0 ? ModuleList{} : ReadEntry(best);
}

std::size_t PageBytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t MappedBytes(const void* data, std::size_t wanted) {
  constexpr std::size_t kStepPages = 1 << 16;
  static unsigned char resident[kStepPages];
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  if (wanted == 0 || wanted > UINTPTR_MAX - begin - PageBytes()) return 0;
  std::uintptr_t page = begin / PageBytes() * PageBytes();
  const std::uintptr_t end = begin + wanted;
  while (page < end) {
    const std::size_t step = std::min(end - page, kStepPages * PageBytes());
    if (mincore(reinterpret_cast<void*>(page), step, resident) != 0) return 0;
    page += step;
  }
  return wanted;
}

ByteView Mapped(const void* data, std::size_t bytes) { return {data, MappedBytes(data, bytes)}; }

// Its pages are checked one after the other.
ByteView TextAt(const char* text) {
  std::size_t bytes = 0;
  while (true) {
    const std::size_t step =
        PageBytes() - reinterpret_cast<std::uintptr_t>(text + bytes) % PageBytes();
    if (MappedBytes(text + bytes, step) == 0) return {};
    const void* const end = std::memchr(text + bytes, 0, step);
    if (end != nullptr)
      return {text, static_cast<std::size_t>(static_cast<const char*>(end) - text)};
    bytes += step;
  }
}

// The directory may lie beyond mapped memory, so it is checked first.
std::size_t LengthOfObject(const char* file) {
  const ByteView start = Mapped(file, sizeof(Elf64_Ehdr));
  const auto header = start.Read<Elf64_Ehdr>(0);
  const std::size_t first = header.e_shoff + sizeof(Elf64_Shdr);
  if (first < header.e_shoff || MappedBytes(file, first) == 0) return 0;
  const std::size_t count = header.e_shnum != 0
                                ? header.e_shnum
                                : ByteView(file, first).Read<Elf64_Shdr>(header.e_shoff).sh_size;
  if (count > SIZE_MAX / sizeof(Elf64_Shdr) / 2) return 0;
  const std::size_t directory = header.e_shoff + count * sizeof(Elf64_Shdr);
  if (directory < header.e_shoff || MappedBytes(file, directory) == 0) return 0;
  return CodeObject({file, directory}).LengthByDirectory();
}

bool Begins(const char* bytes, const void* wanted, std::size_t count) {
  return MappedBytes(bytes, count) != 0 && std::memcmp(bytes, wanted, count) == 0;
}

ByteView BytesAt(const void* image) {
  const auto* const bytes = static_cast<const char*>(image);
  if (Begins(bytes, &base::kFatContainerMagic, sizeof base::kFatContainerMagic)) {
    const FatContainer header(Mapped(bytes, FatContainer::kLeastBytes));
    return Mapped(bytes, header.LengthByHeader());
  }
  if (Begins(bytes, ELFMAG, SELFMAG)) return Mapped(bytes, LengthOfObject(bytes));
  return TextAt(bytes);
}

}  // namespace

std::optional<ModuleList> ReadModule(ByteView image, int architecture) {
  const FatContainer container(image);
  if (container.IsOne()) return ReadContainer(container, architecture);
  return ReadPayload(image,
                     image.BeginsWith({ELFMAG, SELFMAG}) ? FatEntry::kCodeObject : FatEntry::kPtx);
}

ByteView ImageBytes(const void* image) {
  const bool is_wrapper = Begins(static_cast<const char*>(image), &base::kFatWrapperMagic,
                                 sizeof base::kFatWrapperMagic);
  if (is_wrapper && MappedBytes(image, 2 * sizeof(void*)) == 0) return {};
  return BytesAt(is_wrapper ? base::Unwrapped(image) : image);
}

}  // namespace spillway::simulator
