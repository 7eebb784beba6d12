#include "interposer/ledger/image_variables.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace spillway::interposer {
namespace {

constexpr Elf64_Half kCudaMachine = 190;  // EM_CUDA
constexpr char kVariablesPrefix[] = ".nv.global";
constexpr std::uint32_t kWrapperMagic = 0x466243b1;  // fatbinary_section.h, __fatBinC_Wrapper_t
constexpr std::uint32_t kContainerMagic = 0xba55ed50;
constexpr std::size_t kUnknownBytes = SIZE_MAX;  // the image tells its size

template <class Value>
Value ReadAt(const char* bytes, std::size_t offset) {
  Value value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

// The headers of a container's entries; only their lengths are used.
struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t payload_bytes;
};
struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
};

// A code object in memory. It may be unaligned.
class CodeObject {
 public:
  CodeObject(const char* file, std::size_t bytes) : file_(file), bytes_(bytes) {}

  bool IsOne() const {
    if (bytes_ < sizeof(Elf64_Ehdr) || std::memcmp(file_, ELFMAG, SELFMAG) != 0) return false;
    const auto header = Header();
    return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kCudaMachine &&
           header.e_shentsize == sizeof(Elf64_Shdr);
  }

  bool Collect(std::vector<std::string>* names) const {
    const std::size_t count = SectionCount();
    if (!Holds(Header().e_shoff, count * sizeof(Elf64_Shdr)) || NamesSection() >= count)
      return false;
    bool has_symbols = false;
    for (std::size_t i = 0; i < count; ++i) {
      const Elf64_Shdr table = Section(i);
      if (table.sh_type != SHT_SYMTAB) continue;
      if (table.sh_link >= count || !Holds(table.sh_offset, table.sh_size)) return false;
      CollectSymbols(table, count, names);
      has_symbols = true;
    }
    return has_symbols;
  }

 private:
  Elf64_Ehdr Header() const { return ReadAt<Elf64_Ehdr>(file_, 0); }
  Elf64_Shdr Section(std::size_t index) const {
    return ReadAt<Elf64_Shdr>(file_, Header().e_shoff + index * sizeof(Elf64_Shdr));
  }
  bool Holds(std::size_t offset, std::size_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  // Numbers beyond 16 bits are in the first section. (elf(5))
  std::size_t SectionCount() const {
    return Header().e_shnum ? Header().e_shnum : Section(0).sh_size;
  }
  std::size_t NamesSection() const {
    return Header().e_shstrndx == SHN_XINDEX ? Section(0).sh_link : Header().e_shstrndx;
  }
  const char* NameIn(const Elf64_Shdr& strings, std::size_t offset) const {
    return offset < strings.sh_size && Holds(strings.sh_offset, strings.sh_size)
               ? file_ + strings.sh_offset + offset
               : "";
  }
  // Section indices beyond 16 bits are in a table beside the symbols.
  std::size_t SectionOf(const Elf64_Sym& symbol, std::size_t place, std::size_t count) const {
    if (symbol.st_shndx != SHN_XINDEX) return symbol.st_shndx;
    for (std::size_t i = 0; i < count; ++i) {
      const Elf64_Shdr table = Section(i);
      if (table.sh_type == SHT_SYMTAB_SHNDX && place < table.sh_size / sizeof(Elf64_Word))
        return ReadAt<Elf64_Word>(file_, table.sh_offset + place * sizeof(Elf64_Word));
    }
    return SHN_UNDEF;
  }
  void CollectSymbols(const Elf64_Shdr& table, std::size_t count,
                      std::vector<std::string>* names) const {
    const Elf64_Shdr strings = Section(table.sh_link), section_names = Section(NamesSection());
    for (std::size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
      const auto symbol = ReadAt<Elf64_Sym>(file_, table.sh_offset + i * sizeof(Elf64_Sym));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size < sizeof(void*)) continue;
      const std::size_t section = SectionOf(symbol, i, count);
      if (section == SHN_UNDEF || section >= count) continue;
      const char* const place = NameIn(section_names, Section(section).sh_name);
      if (std::strncmp(place, kVariablesPrefix, sizeof kVariablesPrefix - 1) != 0) continue;
      names->emplace_back(NameIn(strings, symbol.st_name));
    }
  }

  const char* const file_;
  const std::size_t bytes_;
};

void Add(const CodeObject& object, ImageVariables* out) {
  if (object.IsOne() && object.Collect(&out->names)) out->is_readable = true;
}

void AddContainer(const char* container, std::size_t bytes, ImageVariables* out) {
  const auto header = ReadAt<ContainerHeader>(container, 0);
  if (header.payload_bytes > bytes - std::min<std::size_t>(bytes, header.header_bytes)) return;
  const std::size_t end = header.header_bytes + header.payload_bytes;
  for (std::size_t at = header.header_bytes; at + sizeof(EntryHeader) <= end;) {
    const auto entry = ReadAt<EntryHeader>(container, at);
    const bool fits = entry.header_bytes >= sizeof entry && entry.header_bytes <= end - at &&
                      entry.payload_bytes <= end - at - entry.header_bytes;
    if (!fits) return;
    Add({container + at + entry.header_bytes, entry.payload_bytes}, out);
    at += entry.header_bytes + entry.payload_bytes;
  }
}

void AddImage(const char* image, std::size_t bytes, ImageVariables* out) {
  const auto magic = bytes < sizeof(Elf64_Ehdr) ? 0 : ReadAt<std::uint32_t>(image, 0);
  if (magic == kContainerMagic)
    AddContainer(image, bytes, out);
  else if (magic && std::memcmp(image, ELFMAG, SELFMAG) == 0)
    Add({image, bytes}, out);
}

ImageVariables Sorted(ImageVariables all) {
  std::sort(all.names.begin(), all.names.end());
  all.names.erase(std::unique(all.names.begin(), all.names.end()), all.names.end());
  return all;
}

}  // namespace

// PTX images may be smaller than a header, so their first bytes are compared one by one.
ImageVariables VariablesOf(const void* image) {
  ImageVariables all;
  const auto* bytes = static_cast<const char*>(image);
  const auto begins = [&bytes](std::uint32_t magic) {
    return std::memcmp(bytes, &magic, sizeof magic) == 0;
  };
  if (begins(kWrapperMagic)) bytes = ReadAt<const char*>(bytes, 2 * sizeof(std::uint32_t));
  if (begins(kContainerMagic) || std::memcmp(bytes, ELFMAG, SELFMAG) == 0)
    AddImage(bytes, kUnknownBytes, &all);
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
      AddImage(static_cast<const char*>(image), bytes, &all);
      munmap(image, bytes);
    }
  }
  close(file);
  return Sorted(std::move(all));
}

}  // namespace spillway::interposer
