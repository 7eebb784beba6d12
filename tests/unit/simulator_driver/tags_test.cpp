// What operations leave in memory in the compute mode `tags`.
#include "simulator/driver/memory/tags.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

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

// A program branches on what a fill writes, so it must not depend on what was read.
TEST(TagsTest, FillsHaveOneValueInEveryByte) {
  Bytes input(kMebibyte, 'x'), output(5 * kMebibyte + 3, 'y');
  WriteTags("any", List({Use(input, UseKind::kRead), Use(output, UseKind::kFill)}));
  EXPECT_EQ(output, Bytes(output.size(), 0));

  WriteTags("all", List({Use(input, UseKind::kRead), Use(output, UseKind::kFill, 1)}));
  EXPECT_EQ(output, Bytes(output.size(), 1));
  EXPECT_EQ(BytesMoved(List({Use(output, UseKind::kFill, 1)})), output.size());
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
  Bytes packed(3 * kMebibyte, 'x'), after_second(64), after_both(64);
  WriteTags("merge", List({Use(packed, UseKind::kPart, 1, 2)}));
  WriteTags("consume", List({Use(packed, UseKind::kRead), Use(after_second, UseKind::kWrite)}));
  WriteTags("merge", List({Use(packed, UseKind::kPart, 0, 2)}));
  WriteTags("consume", List({Use(packed, UseKind::kRead), Use(after_both, UseKind::kWrite)}));

  EXPECT_NE(after_second, after_both);
  std::uint64_t words[4];
  std::memcpy(words, packed.data(), sizeof(words));
  EXPECT_NE(words[0], 0u);
  EXPECT_NE(words[1], 0u);
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

TEST(TagsTest, TagsAreFiniteNumbersOfEveryType) {
  for (std::uint64_t identity = 0; identity < 1000; ++identity) {
    Bytes bytes(16);
    WriteTags("work", List({Use(bytes, UseKind::kWrite)}, identity));
    float single = -1;
    double wide = -1;
    std::uint16_t narrow = 0xffff;
    std::memcpy(&single, bytes.data(), sizeof single);
    std::memcpy(&wide, bytes.data(), sizeof wide);
    std::memcpy(&narrow, bytes.data() + 2, sizeof narrow);

    EXPECT_TRUE(single >= 0 && single < 2) << identity;
    EXPECT_TRUE(wide >= 0 && wide < 2) << identity;
    EXPECT_EQ(narrow & 0xc000, 0) << identity;
  }
}

TEST(TagsTest, ReadAndWrittenOperandsCountTwice) {
  Bytes read(100), write(200), update(50);
  EXPECT_EQ(BytesMoved(List({Use(read, UseKind::kRead), Use(write, UseKind::kWrite),
                             Use(update, UseKind::kUpdate)})),
            400u);
}

}  // namespace
}  // namespace spillway::simulator
