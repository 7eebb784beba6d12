// What operations leave in memory in the compute mode `tags`, and how programs declare their
// kernels' uses.
#include "simulator/driver/memory/tags.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "simulator/driver/device/assumed_uses.h"
#include "simulator/driver/device/declared_uses.h"
#include "tests/unit/simulator_driver/units.h"

namespace spillway::simulator {
namespace {

using Bytes = std::vector<char>;

KernelUse Use(Bytes& bytes, UseKind kind, std::uint32_t part = 0, std::uint32_t parts = 1) {
  return {bytes.data(), bytes.size(), kind, part, parts};
}

KernelUseList List(std::initializer_list<KernelUse> uses, std::uint64_t identity = 1) {
  KernelUseList list{identity, 0, {}};
  for (const KernelUse& use : uses) list.uses[list.count++] = use;
  return list;
}

TEST(TagsTest, OutputDependsOnEveryGranuleOfEveryInput) {
  // Given the output of an operation on an input of three and a half granules
  Bytes input(7 * kMebibyte), output(kMebibyte);
  WriteTags("produce", List({Use(input, UseKind::kWrite)}));
  WriteTags("consume", List({Use(input, UseKind::kRead), Use(output, UseKind::kWrite)}));
  const Bytes right = output;

  for (const std::size_t offset : {std::size_t{0}, 2 * kMebibyte, 4 * kMebibyte, 6 * kMebibyte}) {
    Bytes damaged = input;
    std::memset(damaged.data() + offset, 0, std::min(2 * kMebibyte, damaged.size() - offset));
    WriteTags("consume", List({Use(damaged, UseKind::kRead), Use(output, UseKind::kWrite)}));

    EXPECT_NE(output, right) << offset;
  }
}

TEST(TagsTest, ExchangedGranulesAreDetected) {
  Bytes input(4 * kMebibyte), output(64);
  WriteTags("produce", List({Use(input, UseKind::kWrite)}));
  WriteTags("consume", List({Use(input, UseKind::kRead), Use(output, UseKind::kWrite)}));
  const Bytes right = output;

  std::swap_ranges(input.begin(), input.begin() + 2 * kMebibyte, input.begin() + 2 * kMebibyte);
  WriteTags("consume", List({Use(input, UseKind::kRead), Use(output, UseKind::kWrite)}));

  EXPECT_NE(output, right);
}

TEST(TagsTest, TagsDoNotDependOnAddresses) {
  Bytes here(9 * kMebibyte), there(9 * kMebibyte), first(64), second(64);
  const KernelUse near{here.data() + 512, 5 * kMebibyte + 4, UseKind::kWrite};
  const KernelUse far{there.data() + 3 * kMebibyte, 5 * kMebibyte + 4, UseKind::kWrite};

  WriteTags("produce", List({near}));
  WriteTags("produce", List({far}));

  EXPECT_EQ(std::memcmp(near.pointer, far.pointer, near.size_bytes), 0);
}

TEST(TagsTest, WrittenOperandsForgetAndUpdatedOperandsRemember) {
  Bytes clean(64), dirty(64, 'x');
  WriteTags("work", List({Use(clean, UseKind::kWrite)}));
  WriteTags("work", List({Use(dirty, UseKind::kWrite)}));
  EXPECT_EQ(clean, dirty);

  Bytes zero(64), one(64, 1);
  WriteTags("work", List({Use(zero, UseKind::kUpdate)}));
  WriteTags("work", List({Use(one, UseKind::kUpdate)}));
  EXPECT_NE(Bytes(zero.begin(), zero.begin() + 32), Bytes(one.begin(), one.begin() + 32));
}

// Programs read every byte of outputs, for example in a checksum of the weights.
TEST(TagsTest, BytesBetweenTagsDoNotDependOnOldContents) {
  // Given memory that held a larger and a smaller operand before, at other offsets
  Bytes clean(5 * kMebibyte), used(5 * kMebibyte);
  WriteTags("before", List({{used.data() + kMebibyte, 4 * kMebibyte, UseKind::kWrite}}));
  WriteTags("before", List({{used.data() + 4096, 512, UseKind::kUpdate}}));

  WriteTags("work", List({Use(clean, UseKind::kWrite)}));
  WriteTags("work", List({Use(used, UseKind::kWrite)}));

  EXPECT_TRUE(clean == used);
}

TEST(TagsTest, InterleavedPartsBothRemain) {
  // Given two parts of one buffer, written by two operations
  Bytes packed(3 * kMebibyte, 'x'), after_second(64), after_both(64);
  WriteTags("merge", List({Use(packed, UseKind::kPart, 1, 2)}));
  WriteTags("consume", List({Use(packed, UseKind::kRead), Use(after_second, UseKind::kWrite)}));
  WriteTags("merge", List({Use(packed, UseKind::kPart, 0, 2)}));
  WriteTags("consume", List({Use(packed, UseKind::kRead), Use(after_both, UseKind::kWrite)}));

  // Then a reader sees each
  EXPECT_NE(after_second, after_both);
  std::uint64_t words[4];
  std::memcpy(words, packed.data(), sizeof(words));
  EXPECT_NE(words[0], 0u);
  EXPECT_NE(words[1], 0u);
  // and nothing from before either part
  EXPECT_EQ(words[2], 0u);
  EXPECT_EQ(words[3], 0u);
}

TEST(TagsTest, TagsDependOnFunctionAndScalars) {
  Bytes a(64), b(64), c(64);
  WriteTags("one", List({Use(a, UseKind::kWrite)}, 1));
  WriteTags("two", List({Use(b, UseKind::kWrite)}, 1));
  WriteTags("one", List({Use(c, UseKind::kWrite)}, 2));
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

TEST(TagsTest, ReadAndWrittenOperandsCountTwice) {
  Bytes read(100), write(200), update(50);
  EXPECT_EQ(BytesMoved(List({Use(read, UseKind::kRead), Use(write, UseKind::kWrite),
                             Use(update, UseKind::kUpdate)})),
            400u);
}

// scale(float* out, const float* in, size_t count, struct { int rows, width; } shape)
struct Shape {
  std::int32_t rows, width;
};
constexpr KernelParameter kParameters[] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
constexpr KernelEntry kScale = {"_ZN2ns5scaleILb1EEEvPfPKfmNS_5ShapeE", nullptr, nullptr, 4,
                                kParameters};

TEST(DeclaredUsesTest, SizesFollowParametersAndBlocks) {
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("scale  write(p0, 4*p2) part(p1, 4*(p3[1]+1)*g, 2, p2/300) flops(p2/2 - "
                           "1)  # all of it")
                  .ok());
  float out = 0, in = 0;
  float *out_pointer = &out, *in_pointer = &in;
  std::size_t count = 1000;
  Shape shape{3, 7};
  void* arguments[] = {&out_pointer, &in_pointer, &count, &shape};
  const LaunchShape launch{{2, 3, 1}, {32, 1, 1}, 0};

  const DeclaredKernel* const kernel = uses.Find(kScale.name);
  ASSERT_NE(kernel, nullptr);
  KernelUseList list{};
  kernel->Describe({kScale, launch, arguments}, &list);

  ASSERT_EQ(list.count, 2u);
  EXPECT_EQ(list.uses[0].pointer, &out);
  EXPECT_EQ(list.uses[0].size_bytes, 4000u);
  EXPECT_EQ(list.uses[0].kind, UseKind::kWrite);
  EXPECT_EQ(list.uses[1].size_bytes, 4u * 8 * 6);
  EXPECT_EQ(list.uses[1].part, 2u);
  EXPECT_EQ(list.uses[1].parts, 3u);
  EXPECT_EQ(kernel->Flops({kScale, launch, arguments}), 499u);
}

TEST(DeclaredUsesTest, LineWithTemplateArgumentsWins) {
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("scale write(p0, 1)").ok());
  ASSERT_TRUE(uses.AddLine("scale<true> write(p0, 2)").ok());
  float* pointer = nullptr;
  std::size_t count = 0;
  Shape shape{};
  void* arguments[] = {&pointer, &pointer, &count, &shape};
  KernelUseList list{};
  uses.Find(kScale.name)->Describe({kScale, {{1, 1, 1}, {1, 1, 1}, 0}, arguments}, &list);
  EXPECT_EQ(list.uses[0].size_bytes, 2u);
  EXPECT_EQ(uses.Find("_ZN2ns5otherEv"), nullptr);
}

// Given rules for many kernels: the name wins, then the first pattern that matches.
TEST(DeclaredUsesTest, PatternsMatchTheWholeDemangledName) {
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("\"void ns::scale<*>(float*, *)\" write(p0, 1)").ok());
  ASSERT_TRUE(uses.AddLine("\"*\" write(p0, 2)").ok());
  ASSERT_TRUE(uses.AddLine("other write(p0, 3)").ok());
  const auto bytes_of = [&](const char* name) {
    float* pointer = nullptr;
    std::size_t count = 0;
    Shape shape{};
    void* arguments[] = {&pointer, &pointer, &count, &shape};
    KernelUseList list{};
    uses.Find(name)->Describe({kScale, {{1, 1, 1}, {1, 1, 1}, 0}, arguments}, &list);
    return list.uses[0].size_bytes;
  };
  EXPECT_EQ(bytes_of(kScale.name), 1u);
  EXPECT_EQ(bytes_of("_ZN2ns5scaleILb1EEEvPdPKfmNS_5ShapeE"), 2u);
  EXPECT_EQ(bytes_of("_ZN2ns5otherEv"), 3u);
}

// scale(float* out, ..., struct { int rows, width; float* in; } view) of a module without source
TEST(DeclaredUsesTest, WholeAllocationsAndPointersInStructsAreUsed) {
  struct View {
    std::int32_t rows, width;
    const float* in;
  };
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 16}};
  static constexpr KernelEntry kGather = {"gather", nullptr, nullptr, 2, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("gather write(p0, all) read(p1[2], 4*p1[1])").ok());
  float memory[100] = {};
  float* out = memory + 10;
  View view{3, 7, memory};
  void* arguments[] = {&out, &view};
  const NamedMemory named[] = {
      {0, reinterpret_cast<std::uintptr_t>(out), reinterpret_cast<std::uintptr_t>(memory), 400, 1}};
  KernelUseList list{};
  uses.Find("gather")->Describe({kGather, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, named}, &list);
  EXPECT_TRUE(uses.Find("gather")->NeedsAllocations());
  EXPECT_EQ(list.uses[0].pointer, memory);
  EXPECT_EQ(list.uses[0].size_bytes, 400u);
  EXPECT_EQ(list.uses[1].pointer, memory);
  EXPECT_EQ(list.uses[1].size_bytes, 28u);
}

TEST(DeclaredUsesTest, IdentityIsOfScalarsThatAreNotIgnored) {
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("scale write(p0, 4) ignore(p3)").ok());
  float* pointer = nullptr;
  std::size_t count = 1;
  Shape shape{};
  void* arguments[] = {&pointer, &pointer, &count, &shape};
  const auto identity = [&](std::vector<NamedMemory> named) {
    KernelUseList list{};
    uses.Find(kScale.name)->Describe({kScale, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, named}, &list);
    return list.identity;
  };
  const std::uint64_t first = identity({});
  shape.rows = 5;
  EXPECT_EQ(identity({}), first);
  // A word that names memory is no scalar: its value is an address.
  const std::uint64_t with_memory = identity({{16, 1, 1, 8, 1}});
  count = 2;
  EXPECT_NE(identity({}), first);
  EXPECT_EQ(identity({{16, 2, 2, 8, 1}}), with_memory);
}

// reader(float* a, struct { float* b; int unused; } view, int count)
TEST(AssumedUsesTest, EveryNamedAllocationIsUpdatedOnce) {
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 16}, {24, 4}};
  static constexpr KernelEntry kReader = {"reader", nullptr, nullptr, 3, kParts};
  char memory[300] = {};
  const auto base = reinterpret_cast<std::uintptr_t>(memory);
  struct {
    const void* b;
    int unused;
  } view{memory + 250, 4711};
  const void* a = memory + 8;
  int count = 3;
  void* arguments[] = {&a, &view, &count};
  const std::vector<NamedMemory> named = {{0, base + 8, base, 100, 1},
                                          {8, base + 250, base + 200, 100, 2}};
  const auto assume = [&](const std::vector<NamedMemory>& all) {
    return AssumeUses({kReader, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, all});
  };

  const AssumedUses assumed = assume(named);
  ASSERT_EQ(assumed.uses.size(), 2u);
  EXPECT_EQ(assumed.uses[0].pointer, memory);
  EXPECT_EQ(assumed.uses[1].pointer, memory + 200);
  EXPECT_EQ(assumed.uses[1].size_bytes, 100u);
  EXPECT_EQ(assumed.uses[1].kind, UseKind::kUpdate);
  // Two words in one allocation are one use.
  EXPECT_EQ(assume({named[0], {8, base + 90, base, 100, 1}}).uses.size(), 1u);

  // The identity depends on scalars, and not on addresses or what else a struct holds.
  view.unused = 0;
  EXPECT_EQ(assume(named).identity, assumed.identity);
  EXPECT_EQ(assume({{0, 1008, 1000, 100, 1}, {8, 2050, 2000, 100, 2}}).identity, assumed.identity);
  EXPECT_NE(assume({{0, 1009, 1000, 100, 1}, {8, 2050, 2000, 100, 2}}).identity, assumed.identity);
  count = 4;
  EXPECT_NE(assume(named).identity, assumed.identity);
}

TEST(DeclaredUsesTest, MistakesAreDistinguished) {
  DeclaredUses uses;
  EXPECT_FALSE(uses.AddLine("\"scale write(p0, 4)").ok());
  EXPECT_FALSE(uses.AddLine("scale part(p0, all, 1, 2)").ok());
  EXPECT_FALSE(uses.AddLine("scale ignore(4)").ok());
  EXPECT_FALSE(uses.AddLine("scale writes(p0, 4)").ok());
  EXPECT_FALSE(uses.AddLine("scale write(4, p0)").ok());
  EXPECT_FALSE(uses.AddLine("scale write(p0, 4").ok());
  EXPECT_FALSE(uses.AddLine("scale").ok());
  EXPECT_TRUE(uses.AddLine("  # nothing").ok());
  EXPECT_EQ(uses.AddFile("/nowhere/program.uses").error().code, ENOENT);
}

}  // namespace
}  // namespace spillway::simulator
