// How programs and rules declare what kernels read and write, and what is assumed of others.
#include "simulator/driver/device/declared_uses.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "simulator/driver/device/assumed_uses.h"

namespace spillway::simulator {
namespace {

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
  const KernelEffect effect = kernel->Describe({kScale, launch, arguments});

  ASSERT_EQ(effect.uses.size(), 2u);
  EXPECT_EQ(effect.uses[0].pointer, &out);
  EXPECT_EQ(effect.uses[0].size_bytes, 4000u);
  EXPECT_EQ(effect.uses[0].kind, UseKind::kWrite);
  EXPECT_EQ(effect.uses[1].size_bytes, 4u * 8 * 6);
  EXPECT_EQ(effect.uses[1].part, 2u);
  EXPECT_EQ(effect.uses[1].parts, 3u);
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
  const KernelEffect effect =
      uses.Find(kScale.name)->Describe({kScale, {{1, 1, 1}, {1, 1, 1}, 0}, arguments});
  EXPECT_EQ(effect.uses[0].size_bytes, 2u);
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
    return uses.Find(name)
        ->Describe({kScale, {{1, 1, 1}, {1, 1, 1}, 0}, arguments})
        .uses[0]
        .size_bytes;
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
  const KernelEffect effect =
      uses.Find("gather")->Describe({kGather, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, named});
  EXPECT_TRUE(uses.Find("gather")->NeedsAllocations());
  EXPECT_EQ(effect.uses[0].pointer, memory);
  EXPECT_EQ(effect.uses[0].size_bytes, 400u);
  EXPECT_EQ(effect.uses[1].pointer, memory);
  EXPECT_EQ(effect.uses[1].size_bytes, 28u);
}

TEST(DeclaredUsesTest, IdentityIsOfScalarsThatAreNotIgnored) {
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("scale write(p0, 4) ignore(p3)").ok());
  float* pointer = nullptr;
  std::size_t count = 1;
  Shape shape{};
  void* arguments[] = {&pointer, &pointer, &count, &shape};
  const auto identity = [&](std::vector<NamedMemory> named) {
    return uses.Find(kScale.name)
        ->Describe({kScale, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, named})
        .identity;
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

  const KernelEffect assumed = assume(named);
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

// Regression: unused entries of PyTorch's tables named other memory in each run, so a program's
// output differed between budgets.
TEST(AssumedUsesTest, WordsOfLargeStructsDoNotCount) {
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 128}, {136, 136}};
  static constexpr KernelEntry kConcatenate = {"concatenate", nullptr, nullptr, 3, kParts};
  const char small[128] = {}, table[136] = {};
  const void* out = small;
  void* arguments[] = {&out, const_cast<char*>(small), const_cast<char*>(table)};
  const NamedMemory all[] = {
      {0, 1000, 1000, 100, 1}, {128, 2000, 2000, 100, 2}, {136, 3008, 3000, 100, 3}};
  const auto assume = [&](std::size_t count) {
    return AssumeUses({kConcatenate, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, {all, count}});
  };

  const KernelEffect assumed = assume(3);

  ASSERT_EQ(assumed.uses.size(), 2u);
  EXPECT_EQ(assumed.uses[1].pointer, reinterpret_cast<void*>(std::uintptr_t{2000}));
  EXPECT_EQ(assumed.identity, assume(2).identity);
}

// add(int count, functor, std::array<char*, 2>): the bytes follow from the type in the name.
TEST(DeclaredUsesTest, SizesFollowTypesThatThePatternCaptures) {
  static constexpr KernelParameter kParts[] = {{0, 4}, {4, 1}, {8, 16}};
  const auto entry = [](const char* name) {
    return KernelEntry{name, nullptr, nullptr, 3, kParts};
  };
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("\"void add<{T}>(*\" write(p2:64[0], p0*sizeof(T)) "
                           "read(p2:64[1], p0*sizeof(T)) ignore(p1)")
                  .ok());
  char out[80], in[80];
  std::int32_t count = 10;
  char functor = 'x';
  const void* data[] = {out, in};
  void* arguments[] = {&count, &functor, data};
  const auto describe = [&](const char* name) {
    return uses.Find(name)->Describe({entry(name), {{1, 1, 1}, {1, 1, 1}, 0}, arguments});
  };

  const KernelEffect floats = describe("_Z3addIfEvT_");
  EXPECT_EQ(floats.uses[0].pointer, out);
  EXPECT_EQ(floats.uses[1].pointer, in);
  EXPECT_EQ(floats.uses[1].size_bytes, 40u);
  EXPECT_EQ(describe("_Z3addIdEvT_").uses[1].size_bytes, 80u);
  EXPECT_EQ(uses.Find("_Z3addI4TypeEvT_"), nullptr);
}

// apply(struct { char* addresses[4]; int64_t counts[4]; uint16_t last; int steps[2]; }): lists of
// tensors in one parameter.
TEST(DeclaredUsesTest, UsesAndTermsAreRepeated) {
  struct Lists {
    const void* addresses[4];
    std::int64_t counts[4];
    std::uint16_t last[2];
    std::int32_t steps[2];
  };
  static constexpr KernelParameter kParts[] = {{0, sizeof(Lists)}};
  static constexpr KernelEntry kApply = {"apply", nullptr, nullptr, 1, kParts};
  char tensors[40];
  Lists lists = {
      {tensors, tensors + 10, tensors + 20, tensors + 30}, {7, 8, 9, 10}, {9, 2}, {3, 5}};
  void* arguments[] = {&lists};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("apply read(p0:64[3], sum(2, p0[17+j]*(j+1))) "
                           "each(p0:16[33]+1) update(p0:64[i], 2*p0:64[4+i])")
                  .ok());

  const KernelEffect effect =
      uses.Find("apply")->Describe({kApply, {{1, 1, 1}, {1, 1, 1}, 0}, arguments});

  ASSERT_EQ(effect.uses.size(), 4u);
  EXPECT_EQ(effect.uses[0].pointer, tensors + 30);
  EXPECT_EQ(effect.uses[0].size_bytes, 3u + 2 * 5);
  EXPECT_EQ(effect.uses[1].pointer, tensors);
  EXPECT_EQ(effect.uses[3].pointer, tensors + 20);
  EXPECT_EQ(effect.uses[3].size_bytes, 18u);
}

// flip(struct { float* last; int count; }): the pointer is that of the last element.
TEST(DeclaredUsesTest, UsesMayBeginBeforeTheirPointer) {
  static constexpr KernelParameter kParts[] = {{0, 16}};
  static constexpr KernelEntry kFlip = {"flip", nullptr, nullptr, 1, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("flip update(p0:64[0]-4*(p0[2]-1), 4*p0[2]) read(p0-8, 8)").ok());
  EXPECT_FALSE(uses.AddLine("flip update(p0-, 8)").ok());
  struct {
    const float* last;
    int count;
  } view{nullptr, 5};
  float memory[5];
  view.last = memory + 4;
  void* arguments[] = {&view};
  const auto describe = [&] {
    return uses.Find("flip")->Describe({kFlip, {{1, 1, 1}, {1, 1, 1}, 0}, arguments});
  };

  EXPECT_EQ(describe().uses[0].pointer, memory);
  EXPECT_EQ(describe().uses[0].size_bytes, 20u);
  EXPECT_EQ(describe().uses[1].pointer, memory + 2);
  view.last = nullptr;
  EXPECT_EQ(describe().uses[0].pointer, nullptr);
}

// A struct's layout may be unknown but for the order of its pointers.
TEST(DeclaredUsesTest, PointersAreCountedAmongTheWordsThatLieInAllocations) {
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 32}};
  static constexpr KernelEntry kReduce = {"reduce", nullptr, nullptr, 2, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("reduce read(p1@0, 8) write(p1@1, all) write(p1@2, 4)").ok());
  char memory[100];
  const auto base = reinterpret_cast<std::uintptr_t>(memory);
  std::uint64_t other = base, words[4] = {17, base + 30, 3, base + 60};
  void* arguments[] = {&other, words};
  const NamedMemory named[] = {
      {0, base, base, 20, 1}, {16, base + 30, base + 20, 30, 2}, {32, base + 60, base + 50, 50, 3}};

  EXPECT_TRUE(uses.Find("reduce")->NeedsAllocations());
  const KernelEffect effect =
      uses.Find("reduce")->Describe({kReduce, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, named});

  EXPECT_EQ(effect.uses[0].pointer, memory + 30);
  EXPECT_EQ(effect.uses[1].pointer, memory + 50);
  EXPECT_EQ(effect.uses[1].size_bytes, 50u);
  EXPECT_EQ(effect.uses[2].pointer, nullptr);
}

// A view that repeats its elements is shorter than the sum of its strides says.
TEST(DeclaredUsesTest, UsesEndWithTheirAllocations) {
  static constexpr KernelParameter kParts[] = {{0, 8}};
  static constexpr KernelEntry kSum = {"sum", nullptr, nullptr, 1, kParts};
  char memory[100];
  const char* pointer = memory + 40;
  void* arguments[] = {&pointer};
  const NamedMemory named[] = {{0, reinterpret_cast<std::uintptr_t>(pointer),
                                reinterpret_cast<std::uintptr_t>(memory), 100, 1}};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("sum read(p0, 1000) update(p0, 9*bytes(p0)-12)").ok());

  const KernelEffect effect =
      uses.Find("sum")->Describe({kSum, {{1, 1, 1}, {1, 1, 1}, 0}, arguments, named});

  EXPECT_EQ(effect.uses[0].size_bytes, 60u);
  EXPECT_EQ(effect.uses[1].size_bytes, 60u);  // 9 * 8 - 12
}

TEST(DeclaredUsesTest, TextsWithNamesStandInLaterLines) {
  static constexpr KernelParameter kParts[] = {{0, 8}};
  static constexpr KernelEntry kFill = {"fill", nullptr, nullptr, 1, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("$size = 4").ok());
  ASSERT_TRUE(uses.AddLine("$sizes = ($size * 10)  ").ok());
  ASSERT_TRUE(uses.AddLine("fill write(p0, $sizes+$size)").ok());
  EXPECT_FALSE(uses.AddLine("$size").ok());
  EXPECT_FALSE(uses.AddLine("$ = 3").ok());
  EXPECT_FALSE(uses.AddLine("fill write(p0, $other)").ok());
  // Regression: a text with its own name in it was expanded for ever.
  EXPECT_TRUE(uses.AddLine("$turn = ($turn+1)").ok());
  EXPECT_FALSE(uses.AddLine("fill write(p0, $turn)").ok());
  std::uint64_t pointer = 0;
  void* arguments[] = {&pointer};

  EXPECT_EQ(
      uses.Find("fill")->Describe({kFill, {{1, 1, 1}, {1, 1, 1}, 0}, arguments}).uses[0].size_bytes,
      44u);
}

// Regression: the byte of an empty functor, which nobody writes, made equal runs differ.
TEST(DeclaredUsesTest, AParameterOfOneByteIsNoScalar) {
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 2}, {10, 1}};
  static constexpr KernelEntry kScan = {"scan", nullptr, nullptr, 3, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("scan write(p0, 4)").ok());
  const void* pointer = nullptr;
  std::uint16_t count = 1;
  char functor = 'x';
  void* arguments[] = {&pointer, &count, &functor};
  const RuledLaunch launch{kScan, {{1, 1, 1}, {1, 1, 1}, 0}, arguments};
  const auto identities = [&] {
    return std::pair(uses.Find("scan")->Describe(launch).identity, AssumeUses(launch).identity);
  };

  const auto before = identities();
  functor = 'y';
  EXPECT_EQ(identities(), before);
  count = 2;
  EXPECT_NE(identities().first, before.first);
  EXPECT_NE(identities().second, before.second);
}

TEST(DeclaredUsesTest, TextsTakeArguments) {
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 8}};
  static constexpr KernelEntry kCopy = {"copy", nullptr, nullptr, 2, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("$rows = $1[0]*($1[1]+$2)").ok());
  ASSERT_TRUE(uses.AddLine("$both = read(p0, $rows($1, (1+1))) write(p0, $rows($1, $2))").ok());
  ASSERT_TRUE(uses.AddLine("copy $both(p1, min(3, 9)) read(p0, 1)").ok());
  ASSERT_TRUE(uses.AddLine("$first = 5*$1").ok());
  EXPECT_TRUE(uses.AddLine("other write(p0, $first(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11))").ok());
  EXPECT_FALSE(uses.AddLine("copy write(p0, $rows)").ok());
  EXPECT_FALSE(uses.AddLine("copy write(p0, $rows(p1)").ok());
  EXPECT_FALSE(uses.AddLine("copy write(p0, $rows(p1))").ok());
  const void* pointer = nullptr;
  std::int32_t sizes[] = {10, 4};
  void* arguments[] = {&pointer, sizes};

  const KernelEffect effect =
      uses.Find("copy")->Describe({kCopy, {{1, 1, 1}, {1, 1, 1}, 0}, arguments});

  ASSERT_EQ(effect.uses.size(), 3u);
  EXPECT_EQ(effect.uses[0].size_bytes, 10u * (4 + 2));
  EXPECT_EQ(effect.uses[1].size_bytes, 10u * (4 + 3));
  EXPECT_EQ(uses.Find("other")
                ->Describe({kCopy, {{1, 1, 1}, {1, 1, 1}, 0}, arguments})
                .uses[0]
                .size_bytes,
            5u);
}

TEST(DeclaredUsesTest, TermsChooseAndSeeTheGrid) {
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 4}};
  static constexpr KernelEntry kCopy = {"copy", nullptr, nullptr, 2, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("copy write(p0, min(p1, 5)) write(p0, any(p1)+8*any(p1-7)) "
                           "write(p0, 100*gx+10*gy+gz) read(p0, g)")
                  .ok());
  const void* pointer = nullptr;
  std::int32_t number = 7;
  void* arguments[] = {&pointer, &number};

  const KernelEffect effect =
      uses.Find("copy")->Describe({kCopy, {{2, 3, 4}, {1, 1, 1}, 0}, arguments});

  EXPECT_EQ(effect.uses[0].size_bytes, 5u);
  EXPECT_EQ(effect.uses[1].size_bytes, 1u);
  EXPECT_EQ(effect.uses[2].size_bytes, 234u);
  EXPECT_EQ(effect.uses[3].size_bytes, 24u);
  EXPECT_FALSE(uses.AddLine("copy write(p0, min(3))").ok());
  EXPECT_FALSE(uses.AddLine("copy write(p0, any())").ok());
}

// isfinite(bool* out, const float* in, int count): the program branches on the result.
TEST(DeclaredUsesTest, FillHasTheByteToWrite) {
  static constexpr KernelParameter kParts[] = {{0, 8}, {8, 8}, {16, 4}};
  static constexpr KernelEntry kTest = {"isfinite", nullptr, nullptr, 3, kParts};
  DeclaredUses uses;
  ASSERT_TRUE(uses.AddLine("isfinite fill(p0, p2, 1) read(p1, 4*p2)").ok());
  const void* pointer = nullptr;
  std::int32_t count = 6;
  void* arguments[] = {&pointer, &pointer, &count};

  const KernelEffect effect =
      uses.Find("isfinite")->Describe({kTest, {{1, 1, 1}, {1, 1, 1}, 0}, arguments});

  EXPECT_EQ(effect.uses[0].kind, UseKind::kFill);
  EXPECT_EQ(effect.uses[0].size_bytes, 6u);
  EXPECT_EQ(effect.uses[0].part, 1u);
  EXPECT_EQ(effect.uses[1].kind, UseKind::kRead);
  EXPECT_FALSE(uses.AddLine("isfinite fill(p0, p2)").ok());
  EXPECT_FALSE(uses.AddLine("isfinite fill(p0, all, 1)").ok());
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
  EXPECT_FALSE(uses.AddLine("scale write(p0:7[1], 4)").ok());
  EXPECT_FALSE(uses.AddLine("scale write(p0, sum(4))").ok());
  EXPECT_FALSE(uses.AddLine("\"scale<{T}>\" write(p0, sizeof(In))").ok());
  EXPECT_FALSE(uses.AddLine("scale write(p0, sizeof(T))").ok());
  EXPECT_TRUE(uses.AddLine("  # nothing").ok());
  EXPECT_EQ(uses.AddFile("/nowhere/program.uses").error().code, ENOENT);
}

}  // namespace
}  // namespace spillway::simulator
