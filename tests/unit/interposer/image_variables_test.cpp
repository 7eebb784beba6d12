// The device variables that images of all formats declare.
#include "interposer/ledger/image_variables.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <unistd.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fat_binary.h"
#include "interposer/ledger/decompress.h"
#include "simulator/kernels/module_elf.h"

namespace spillway::interposer {
namespace {

std::uint64_t storage[4];
constexpr simulator::KernelEntry kKernels[] = {{"kernel", nullptr, nullptr, 0, nullptr}};
constexpr simulator::GlobalEntry kGlobals[] = {
    {"table", storage, 32}, {"flag", storage, 4}, {"root", storage, 8}};
constexpr simulator::Image kImage = {
    {'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'}, 1, 1, kKernels, 3, kGlobals};
const std::vector<std::string> kExpected = {"flag", "root", "table"};

const void* ModuleWith(std::span<const simulator::GlobalEntry> variables) {
  return simulator::ModuleElfOf({{'S', 'P', 'I', 'L', 'L', 'S', 'I', 'M'},
                                 1,
                                 1,
                                 kKernels,
                                 static_cast<std::uint32_t>(variables.size()),
                                 variables.data()});
}

// The file of module_elf.h, whose section headers end it.
std::string Object() {
  const auto* const file = static_cast<const char*>(simulator::ModuleElfOf(kImage));
  Elf64_Ehdr header;
  std::memcpy(&header, file, sizeof header);
  return {file, header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr)};
}

template <class Value>
std::string BytesOf(Value value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string Entry(const std::string& payload) {
  const std::string padded = payload + std::string(-payload.size() % 8, '\0');
  return BytesOf<std::uint32_t>(0x01010002) + BytesOf<std::uint32_t>(64) +
         BytesOf<std::uint64_t>(padded.size()) + std::string(48, '\0') + padded;
}
// `original_bytes`: the payload's length by the entry.
std::string CompressedEntry(const std::string& compressed, std::uint64_t flags,
                            std::uint64_t original_bytes) {
  const std::string padded = compressed + std::string(-compressed.size() % 8, '\0');
  return BytesOf<std::uint32_t>(0x01010002) + BytesOf<std::uint32_t>(64) +
         BytesOf<std::uint64_t>(padded.size()) +
         BytesOf(static_cast<std::uint32_t>(compressed.size())) + std::string(20, '\0') +
         BytesOf(flags) + std::string(8, '\0') + BytesOf(original_bytes) + padded;
}
std::string ZstdEntry(const std::string& object, std::optional<std::uint64_t> claimed = {}) {
  std::string to(ZSTD_compressBound(object.size()), '\0');
  to.resize(ZSTD_compress(to.data(), to.size(), object.data(), object.size(), 3));
  return CompressedEntry(to, base::FatEntry::kZstd, claimed.value_or(object.size()));
}
std::string Lz4Entry(const std::string& object, std::optional<std::uint64_t> claimed = {}) {
  const int bytes = static_cast<int>(object.size());
  std::string to(static_cast<std::size_t>(LZ4_compressBound(bytes)), '\0');
  to.resize(static_cast<std::size_t>(
      LZ4_compress_default(object.data(), to.data(), bytes, static_cast<int>(to.size()))));
  return CompressedEntry(to, base::FatEntry::kLz4, claimed.value_or(object.size()));
}
std::string Container(const std::string& entries) {
  return BytesOf<std::uint32_t>(0xba55ed50) + BytesOf<std::uint32_t>(0x00100001) +
         BytesOf<std::uint64_t>(entries.size()) + entries;
}
const std::string kPtx = ".version 9.0\n.target sm_90\n.visible .global .align 8 .u64 root;\n";

TEST(ImageVariablesTest, ObjectListsItsVariables) {
  // Given a code object with a table, a flag of four bytes, a pointer and a kernel
  // When its variables are read, then the kernel is not among them.
  const ImageVariables found = VariablesOf(Object().data());
  EXPECT_TRUE(found.is_readable);
  EXPECT_EQ(found.names, kExpected);
}

// Parameters alone tell such kernels what to do.
TEST(ImageVariablesTest, PlainObjectsHaveNoVariables) {
  EXPECT_FALSE(VariablesOf(Object().data()).is_plain());
  const ImageVariables found =
      VariablesOf(simulator::ModuleElfOf(kImage, simulator::GlobalsAre::kConstants));
  EXPECT_TRUE(found.is_readable);
  EXPECT_TRUE(found.names.empty());
  EXPECT_TRUE(found.is_plain());
  EXPECT_TRUE(found.has_constants);
  EXPECT_TRUE(VariablesOf(ModuleWith({})).is_plain());
  EXPECT_FALSE(VariablesOf(ModuleWith({})).has_constants);
  EXPECT_FALSE(VariablesOf(kPtx.c_str()).is_plain());
}

TEST(ImageVariablesTest, ContainerListsItsObjectsVariables) {
  const std::string container = Container(Entry(kPtx) + Entry(Object()) + Entry(Object()));
  const ImageVariables found = VariablesOf(container.data());
  EXPECT_TRUE(found.is_readable);
  EXPECT_EQ(found.names, kExpected);
}

TEST(ImageVariablesTest, WrapperLeadsToTheContainer) {
  const std::string container = Container(Entry(Object()));
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const char* data = nullptr;
    void* name = nullptr;
  } wrapper;
  wrapper.data = container.data();
  EXPECT_EQ(VariablesOf(&wrapper).names, kExpected);
}

TEST(ImageVariablesTest, CompressedObjectsAreRead) {
  OpenDecompressors();
  for (const std::string& entry : {ZstdEntry(Object()), Lz4Entry(Object())}) {
    const std::string container = Container(Entry(kPtx) + entry);
    const ImageVariables found = VariablesOf(container.data());
    EXPECT_TRUE(found.is_readable);
    EXPECT_EQ(found.names, kExpected);
  }
}

TEST(ImageVariablesTest, LengthsThatCannotBeMakeCompressedObjectsUnreadable) {
  OpenDecompressors();
  const std::string object = Object();
  for (const std::uint64_t claimed :
       {std::uint64_t{0}, object.size() - 1, object.size() + 1, std::uint64_t{1} << 62}) {
    EXPECT_FALSE(VariablesOf(Container(ZstdEntry(object, claimed)).data()).is_readable) << claimed;
    EXPECT_FALSE(VariablesOf(Container(Lz4Entry(object, claimed)).data()).is_readable) << claimed;
  }
}

// A program of PyTorch's has a thousand of them.
TEST(ImageVariablesTest, ConstantsThatLookLikeVariablesAreLeftOut) {
  static constexpr simulator::GlobalEntry kConstants[] = {
      {"$str$1", storage, 32},
      {"__unnamed_3", storage, 15},
      {"precalc_xorwow_matrix", storage, 32},
      {"mrg32k3aM1", storage, 32},
      {"_ZN23_INTERNAL_ab_4_x_cu_cd14cuda3std3__45__cpo5beginE", storage, 1},
      {"_ZN6thrust12placeholders2_1E", storage, 1}};
  EXPECT_TRUE(VariablesOf(ModuleWith(kConstants)).is_plain());

  static constexpr simulator::GlobalEntry kState[] = {
      {"_ZN6thrust5countE", storage, 4},
      {"is_done", storage, 1},
      {"_ZN3sim16thruster_enabledE", storage, 1},
      {"_ZN3sim13cubic_visitedE", storage, 1},
      {"_ZN6holderIN6thrust7complexEE4doneE", storage, 1},
      {"_ZN4cuda5flagsE", storage, 1},
      {"_ZN9999999999999999999999thrust1aE", storage, 1}};
  EXPECT_EQ(VariablesOf(ModuleWith(kState)).names.size(), 7u);
}

TEST(ImageVariablesTest, PtxAndBrokenImagesAreUnreadable) {
  EXPECT_FALSE(VariablesOf(kPtx.c_str()).is_readable);
  EXPECT_FALSE(VariablesOf("x").is_readable);
  const std::string container = Container(Entry(kPtx) + Entry("\x28\xb5\x2f\xfd compressed"));
  EXPECT_FALSE(VariablesOf(container.data()).is_readable);
}

TEST(ImageVariablesTest, TruncatedFilesAreUnreadable) {
  const std::string whole = Container(Entry(Object()));
  const std::string path = "/tmp/spillway-image-" + std::to_string(getpid());
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 40) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(whole.data(), static_cast<long>(bytes));
    EXPECT_FALSE(VariablesOfFile(path.c_str()).is_readable) << bytes;
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << whole;
  EXPECT_EQ(VariablesOfFile(path.c_str()).names, kExpected);
  unlink(path.c_str());
  EXPECT_FALSE(VariablesOfFile("/no/such/file").is_readable);
}

}  // namespace
}  // namespace spillway::interposer
