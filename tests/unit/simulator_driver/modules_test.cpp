// What modules of every form list: kernels, the places of their parameters, variables. The fixtures
// were made by nvcc (tests/fixtures/modules/make_modules).
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string>

#include "base/file.h"
#include "simulator/driver/modules/ptx_list.h"
#include "simulator/driver/modules/ptx_text.h"
#include "simulator/driver/modules/read_module.h"
#include "tests/support/paths.h"

namespace spillway::simulator {
namespace {

constexpr int kH200 = 90;

std::string Module(const std::string& name) {
  return *base::ReadFile(test::Fixture("modules/" + name));
}

std::optional<ModuleList> Read(const std::string& bytes, int architecture = kH200) {
  return ReadModule({bytes.data(), bytes.size()}, architecture);
}

// "offset:bytes offset:bytes" by kernel.
std::map<std::string, std::string> Layouts(const ModuleList& list) {
  std::map<std::string, std::string> layouts;
  for (const ListedKernel& kernel : list.kernels) {
    std::string& layout = layouts[kernel.name];
    for (const KernelParameter& parameter : kernel.parameters) {
      layout += (layout.empty() ? "" : " ") + std::to_string(parameter.offset_bytes) + ":" +
                std::to_string(parameter.size_bytes);
    }
  }
  return layouts;
}

std::map<std::string, std::uint64_t> Variables(const ModuleList& list) {
  std::map<std::string, std::uint64_t> sizes;
  for (const ListedVariable& variable : list.variables) sizes[variable.name] = variable.size_bytes;
  return sizes;
}

// As kernels.cu declares them.
const std::map<std::string, std::string> kLayouts = {
    {"_ZN7fixture5scaleIfEEvPT_PKS1_iS1_", "0:8 8:8 16:4 20:4"},
    {"_ZN7fixture5scaleIdEEvPT_PKS1_iS1_", "0:8 8:8 16:4 24:8"},
    {"take_pair", "0:24 24:2 32:8 48:16"},
    {"take_large", "0:5000 5000:4 5008:8"},
    {"take_nothing", ""}};
const std::map<std::string, std::uint64_t> kVariables = {
    {"weights", 4000}, {"counter", 4}, {"table", 256}, {"shared_total", 4}};

class ModuleFormTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ModuleFormTest, ListsKernelsParametersAndVariables) {
  const auto list = Read(Module(GetParam()));
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(Layouts(*list), kLayouts);
  EXPECT_EQ(Variables(*list), kVariables);
}

INSTANTIATE_TEST_SUITE_P(Forms, ModuleFormTest,
                         ::testing::Values("sm_80.cubin", "sm_90.cubin", "sm_100.cubin",
                                           "plain.fatbin", "zstd.fatbin", "lz4.fatbin",
                                           "ptx_only.fatbin", "ptx_only_zstd.fatbin",
                                           "kernels.ptx"));

TEST(ReadModuleTest, AnyArchitectureServesADeviceThatHasNone) {
  for (const int architecture : {35, 80, 86, 120}) {
    const auto list = Read(Module("zstd.fatbin"), architecture);
    ASSERT_TRUE(list.has_value()) << architecture;
    EXPECT_EQ(Layouts(*list), kLayouts);
  }
}

TEST(ReadModuleTest, TruncatedImagesAreRefused) {
  for (const char* name : {"sm_90.cubin", "zstd.fatbin", "lz4.fatbin", "ptx_only.fatbin"}) {
    const std::string whole = Module(name);
    for (std::size_t bytes = 0; bytes < whole.size(); bytes += 97)
      EXPECT_FALSE(Read(whole.substr(0, bytes)).has_value()) << name << " " << bytes;
  }
}

TEST(ReadModuleTest, OtherDataIsRefused) {
  for (const char* data : {"", "x", "this is no image",
                           "\x7f"
                           "ELF",
                           "P\xedU\xba"})
    EXPECT_FALSE(Read(data).has_value()) << data;
  EXPECT_FALSE(Read(Module("kernels.cu")).has_value());
}

// Given an image in memory, which tells its own length
TEST(ImageBytesTest, LengthIsThatOfTheImage) {
  for (const char* name : {"sm_80.cubin", "sm_90.cubin", "sm_100.cubin", "zstd.fatbin"}) {
    const std::string whole = Module(name);
    const std::string followed = whole + std::string(10'000, 'x');
    const base::ByteView found = ImageBytes(followed.data());
    EXPECT_LE(found.size(), whole.size()) << name;
    EXPECT_TRUE(ReadModule(found, kH200).has_value()) << name;
  }
  EXPECT_EQ(ImageBytes(".version 9.0").size(), 12u);
}

// Given an image whose end is not mapped, as if the program had mapped half of a file
TEST(ImageBytesTest, NothingBeyondMappedMemoryIsRead) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const memory = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(munmap(memory + page, page), 0);
  for (const char* name : {"sm_90.cubin", "plain.fatbin", "kernels.ptx"}) {
    const std::string whole = Module(name);
    for (const std::size_t mapped : {std::size_t{4}, std::size_t{20}, page}) {
      char* const image = memory + page - mapped;
      std::memcpy(image, whole.data(), mapped);
      EXPECT_EQ(ImageBytes(image).size(), 0u) << name << " " << mapped;
    }
  }
  munmap(memory, page);
}

TEST(PtxListTest, DeclarationsOfEveryKindAreRead) {
  const auto list = ListPtx(R"ptx(
// .entry commented_out()
.version 8.3
.target sm_80 /* .entry nor_this() */
.address_size 64
.file 1 ".entry not_this_either()"
.extern .shared .align 16 .b8 shared_memory[];
.extern .global .align 4 .b8 elsewhere[];
.visible .global .attribute(.managed) .align 8 .b64 table[2][3] = {1, 2, {3, 4}}, next = 5;
.const .align 16 .v4 .f32 corner;
.global .texref image;
.func (.param .b32 result) helper(.param .b64 argument) { .global .u32 hidden; { ret; } }
.weak .entry pointers(
    .param .u64 .ptr .global .align 256 first,
    .param .b8 flag, .param .align 16 .b8 block[20], .param .f16x2 halves
) .maxntid 256, 1, 1 .minnctapersm 2
{ .reg .b32 %r<2>; ret; }
.entry bare { ret; }
)ptx");
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(Layouts(*list),
            (std::map<std::string, std::string>{{"pointers", "0:8 8:1 16:20 36:4"}, {"bare", ""}}));
  EXPECT_EQ(Variables(*list), (std::map<std::string, std::uint64_t>{
                                  {"table", 48}, {"next", 8}, {"corner", 16}, {"image", 8}}));
}

TEST(PtxTextTest, ListsAreReadBack) {
  const ModuleList list = {
      {{"pointers", {{0, 8}, {8, 1}, {16, 20}, {36, 4}}}, {"bare", {}}, {"one", {{0, 4}}}},
      {{"table", 48}, {"corner", 16}}};
  const auto read = ListPtx(PtxOf(list));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(Layouts(*read), Layouts(list));
  EXPECT_EQ(Variables(*read), Variables(list));
}

TEST(PtxListTest, BrokenDeclarationsAreRefused) {
  for (const char* broken :
       {".entry k(.param .u64 a", ".entry k(.param a)", ".entry k(.u64 a)", ".entry ()",
        ".entry k(.param .b8 a[99999999])", ".global .b8 a[18446744073709551615][9];",
        ".global .b8 a[x];", ".global .align 0 .b8 a;", ".entry k() {", ".entry k(.param .b8 a[])",
        "/*", "\"", ".global .u32 a = {1", ".global .u32"}) {
    const std::string text = std::string(".version 9.0\n") + broken;
    const bool only_unfinished = text.back() == '*' || text.back() == '"';
    EXPECT_EQ(ListPtx(text).has_value(), only_unfinished) << broken;
  }
}

}  // namespace
}  // namespace spillway::simulator
