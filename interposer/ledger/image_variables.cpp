#include "interposer/ledger/image_variables.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/code_object.h"
#include "base/fat_binary.h"
#include "interposer/ledger/decompress.h"

namespace spillway::interposer {
namespace {

using base::ByteView;
using base::CodeObject;
using base::CodeSymbol;

constexpr std::string_view kVariablesPrefix = ".nv.global";
// Of `__constant__` variables. Other banks hold parameters and what the compiler places.
constexpr std::string_view kConstantsPrefix = ".nv.constant3";

// A callee outside the device code that only ends the kernel. Others print, allocate or launch.
// (CUDA C++ Programming Guide, formatted output, dynamic global memory, dynamic parallelism)
constexpr std::string_view kHarmless = "__assertfail";

// The next part of a mangled name, such as "3foo". (Itanium C++ ABI, source-name)
std::string_view TakeComponent(std::string_view* name) {
  std::size_t bytes = 0, digits = 0;
  while (digits < name->size() && (*name)[digits] >= '0' && (*name)[digits] <= '9')
    bytes = std::min(bytes * 10 + static_cast<std::size_t>((*name)[digits++] - '0'), name->size());
  const std::string_view component = name->substr(digits, bytes);
  name->remove_prefix(std::min(digits + bytes, name->size()));
  return component;
}

// Possibly within an unnamed namespace, or internal to a file.
bool IsOfNvidiasHeaders(std::string_view name) {
  if (!name.starts_with("_ZN")) return false;
  name.remove_prefix(3);
  std::string_view space = TakeComponent(&name);
  if (space.starts_with("_INTERNAL_") || space.starts_with("_GLOBAL__N_"))
    space = TakeComponent(&name);
  if (space == "cuda") return TakeComponent(&name) == "std";
  return space == "thrust" || space == "cub" || space == "cute";
}

// Placed among variables by compilers and NVIDIA's headers, and never written: texts of assertions,
// tables of cuRAND and of mathematical functions, objects without state such as Thrust's
// placeholders. (curand_precalc.h, curand_mrg32k3a.h; names as nvcc 12 and 13 make them)
bool IsKnownConstant(const CodeSymbol& symbol) {
  constexpr std::string_view kData[] = {"$str",      "__unnamed_", "precalc_xorwow_",
                                        "mrg32k3aM", "__cudart_",  "__cr_lgamma_table"};
  return std::any_of(std::begin(kData), std::end(kData),
                     [&](std::string_view data) { return symbol.name.starts_with(data); }) ||
         (symbol.size_bytes == 1 && IsOfNvidiasHeaders(symbol.name));
}

bool IsData(const CodeObject& object, const CodeSymbol& symbol) {
  return symbol.type == STT_OBJECT && symbol.size_bytes > 0 && symbol.section != SHN_UNDEF &&
         symbol.section < object.section_count() && !IsKnownConstant(symbol);
}

void AddData(const CodeObject& object, const CodeSymbol& symbol, ImageVariables* out) {
  if (!IsData(object, symbol)) return;
  const std::string_view section = object.Section(symbol.section).name;
  if (section.starts_with(kVariablesPrefix)) out->names.emplace_back(symbol.name);
  if (section.starts_with(kConstantsPrefix)) out->has_constants = true;
}

void AddObject(ByteView file, ImageVariables* out) {
  const CodeObject object(file);
  const bool is_readable = object.ForSymbols([&](const CodeSymbol& symbol) {
    AddData(object, symbol, out);
    const bool is_outside = symbol.section == SHN_UNDEF && symbol.type != STT_OBJECT &&
                            !symbol.name.empty() && symbol.name != kHarmless;
    out->calls_outside = out->calls_outside || is_outside;
  });
  if (is_readable) out->is_readable = true;
}

void AddEntry(const base::FatEntry& entry, ImageVariables* out) {
  if (!entry.IsCompressed()) return AddObject(entry.payload, out);
  if (entry.kind != base::FatEntry::kCodeObject) return;
  if (const auto object = Decompress(entry)) AddObject(object->view(), out);
}

void AddImage(ByteView image, ImageVariables* out) {
  const base::FatContainer container(image);
  if (!container.IsOne()) return AddObject(image, out);
  container.ForEntries([out](const base::FatEntry& entry) { AddEntry(entry, out); });
}

ImageVariables Sorted(ImageVariables all) {
  std::sort(all.names.begin(), all.names.end());
  all.names.erase(std::unique(all.names.begin(), all.names.end()), all.names.end());
  return all;
}

}  // namespace

// PTX may be smaller than a header, so first bytes are compared one by one.
ImageVariables VariablesOf(const void* image) {
  ImageVariables all;
  const void* const bytes = base::Unwrapped(image);
  const bool tells_its_length =
      std::memcmp(bytes, &base::kFatContainerMagic, sizeof base::kFatContainerMagic) == 0 ||
      std::memcmp(bytes, ELFMAG, SELFMAG) == 0;
  if (tells_its_length) AddImage({bytes, ByteView::kUnknownBytes}, &all);
  return Sorted(std::move(all));
}

ImageVariables VariablesOfFile(const char* path) {
  ImageVariables all;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat facts;
  if (file < 0) return all;
  if (fstat(file, &facts) == 0 && facts.st_size > 0) {
    const auto bytes = static_cast<std::size_t>(facts.st_size);
    void* const image = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (image != MAP_FAILED) {
      AddImage({image, bytes}, &all);
      munmap(image, bytes);
    }
  }
  close(file);
  return Sorted(std::move(all));
}

}  // namespace spillway::interposer
