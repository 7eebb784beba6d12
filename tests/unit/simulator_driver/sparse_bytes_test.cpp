// Copies and clears over memory of which few pages exist have the results of memmove and memset.
#include "simulator/driver/memory/sparse_bytes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/simulator_driver/units.h"

namespace spillway::simulator {
namespace {

constexpr std::size_t kPage = 4096;

class SparseMemory {
 public:
  explicit SparseMemory(std::size_t size_bytes, int file = -1) : size_bytes_(size_bytes) {
    const int kind = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    data_ = static_cast<char*>(mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, kind, file, 0));
    if (file < 0) madvise(data_, size_bytes, MADV_NOHUGEPAGE);
  }
  ~SparseMemory() { munmap(data_, size_bytes_); }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  char* data() const { return data_; }
  std::size_t ExistingPages() const {
    std::vector<unsigned char> resident(size_bytes_ / kPage);
    mincore(data_, size_bytes_, resident.data());
    std::size_t count = 0;
    for (const unsigned char page : resident) count += page & 1;
    return count;
  }

 private:
  const std::size_t size_bytes_;
  char* data_;
};

TEST(SparseBytesTest, CopyCopiesEveryByteAndClearsTheRest) {
  // Given a source with three written bytes and a target full of older ones
  SparseMemory source(64 * kMebibyte);
  SparseMemory target(64 * kMebibyte);
  source.data()[5] = 'a';
  source.data()[33 * kMebibyte + 7] = 'b';
  source.data()[64 * kMebibyte - 1] = 'c';
  std::memset(target.data(), 'x', 40 * kMebibyte);

  SparseCopy(target.data(), source.data(), 64 * kMebibyte);

  EXPECT_EQ(std::memcmp(target.data(), source.data(), 64 * kMebibyte), 0);
}

TEST(SparseBytesTest, CopyBetweenDifferentPageOffsetsIsExact) {
  SparseMemory source(8 * kMebibyte);
  SparseMemory target(8 * kMebibyte);
  std::memset(source.data() + kMebibyte, 'a', 3 * kPage);
  std::memset(target.data(), 'x', 8 * kMebibyte);

  SparseCopy(target.data() + 1001, source.data() + 17, 5 * kMebibyte);

  EXPECT_EQ(std::memcmp(target.data() + 1001, source.data() + 17, 5 * kMebibyte), 0);
  EXPECT_EQ(target.data()[1000], 'x');
  EXPECT_EQ(target.data()[1001 + 5 * kMebibyte], 'x');
}

TEST(SparseBytesTest, CopyTakesMemoryForWrittenPagesOnly) {
  SparseMemory source(256 * kMebibyte);
  SparseMemory target(256 * kMebibyte);
  for (std::size_t offset = 0; offset < 256 * kMebibyte; offset += 2 * kMebibyte)
    source.data()[offset] = 'a';
  // A page that was only read exists and is zero.
  for (std::size_t offset = 0; offset < 256 * kMebibyte; offset += kPage) {
    ASSERT_EQ(source.data()[offset + 1], 0);
  }

  SparseCopy(target.data(), source.data(), 256 * kMebibyte);

  EXPECT_EQ(target.ExistingPages(), 128u);
}

TEST(SparseBytesTest, PagesWrittenThroughTheFileAreCopied) {
  const int file = memfd_create("sparse_bytes_test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 8 * kMebibyte), 0);
  {
    SparseMemory others(8 * kMebibyte, file);
    others.data()[3 * kMebibyte] = 'a';
  }
  SparseMemory source(8 * kMebibyte, file);
  SparseMemory target(8 * kMebibyte);

  NoteFileMapping(reinterpret_cast<std::uintptr_t>(source.data()), 8 * kMebibyte);
  SparseCopy(target.data(), source.data(), 8 * kMebibyte);
  ForgetMapping(reinterpret_cast<std::uintptr_t>(source.data()));

  EXPECT_EQ(target.data()[3 * kMebibyte], 'a');
  close(file);
}

// A mapping that the simulator knows as a block's.
class Block {
 public:
  explicit Block(std::size_t size_bytes, int file = -1) : memory_(size_bytes, file) {
    NoteBlockMapping(base(), size_bytes, file, false);
  }
  ~Block() { ForgetMapping(base()); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  char* data() const { return memory_.data(); }
  std::size_t ExistingPages() const { return memory_.ExistingPages(); }

 private:
  std::uintptr_t base() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }
  const SparseMemory memory_;
};

int NewFile(std::size_t size_bytes) {
  const int file = memfd_create("sparse_bytes_test", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(file, static_cast<off_t>(size_bytes)), 0);
  return file;
}

TEST(SparseBytesTest, ClearReleasesTheWholePagesOfABlock) {
  const int file = NewFile(8 * kMebibyte);
  const Block private_block(8 * kMebibyte);
  const Block shared_block(8 * kMebibyte, file);
  for (const Block* block : {&private_block, &shared_block}) {
    std::memset(block->data(), 'x', 8 * kMebibyte);

    SparseClear(block->data() + 10, 6 * kMebibyte);

    EXPECT_EQ(block->ExistingPages(), 1u + 512);
    EXPECT_EQ(block->data()[9], 'x');
    EXPECT_EQ(block->data()[10], 0);
    EXPECT_EQ(block->data()[6 * kMebibyte + 9], 0);
    EXPECT_EQ(block->data()[6 * kMebibyte + 10], 'x');
  }
  close(file);
}

TEST(SparseBytesTest, CopiesSpanBlocksOfAllKinds) {
  // Given a source and a destination, each of a private block, ordinary memory and a shared block,
  // side by side
  const int files[] = {NewFile(8 * kMebibyte), NewFile(8 * kMebibyte)};
  const SparseMemory memories[] = {SparseMemory(24 * kMebibyte), SparseMemory(24 * kMebibyte)};
  for (int i = 0; i < 2; ++i) {
    char* const data = memories[i].data();
    ASSERT_NE(mmap(data + 16 * kMebibyte, 8 * kMebibyte, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_FIXED, files[i], 0),
              MAP_FAILED);
    NoteBlockMapping(reinterpret_cast<std::uintptr_t>(data), 8 * kMebibyte, -1, false);
    NoteBlockMapping(reinterpret_cast<std::uintptr_t>(data) + 16 * kMebibyte, 8 * kMebibyte,
                     files[i], false);
  }
  char* const source = memories[0].data();
  char* const target = memories[1].data();
  std::memset(target, 'x', 24 * kMebibyte);
  for (std::size_t offset = 0; offset < 24 * kMebibyte; offset += 999'999) source[offset] = 'a';
  std::memset(source + 15 * kMebibyte, 'b', 2 * kMebibyte);

  // When all but their edges are copied, to other page offsets
  SparseCopy(target + 5, source + 3, 24 * kMebibyte - 10);

  // Then empty pages cost no memory in blocks, every byte is copied, and no other byte changes
  EXPECT_LT(memories[1].ExistingPages(), 2048u + 256 + 100);
  EXPECT_EQ(std::memcmp(target + 5, source + 3, 24 * kMebibyte - 10), 0);
  EXPECT_EQ(std::string(target, 5), "xxxxx");
  EXPECT_EQ(std::string(target + 24 * kMebibyte - 5, 5), "xxxxx");
  for (int i = 0; i < 2; ++i) {
    ForgetMapping(reinterpret_cast<std::uintptr_t>(memories[i].data()));
    ForgetMapping(reinterpret_cast<std::uintptr_t>(memories[i].data()) + 16 * kMebibyte);
    close(files[i]);
  }
}

TEST(SparseBytesTest, PagesThatWereOnlyReadAreReleasedOnACopy) {
  const int file = NewFile(8 * kMebibyte);
  const Block source(8 * kMebibyte, file);
  const Block target(8 * kMebibyte);
  for (std::size_t offset = 0; offset < 8 * kMebibyte; offset += kPage)
    ASSERT_EQ(source.data()[offset], 0);
  ASSERT_EQ(source.ExistingPages(), 2048u);

  SparseCopy(target.data(), source.data(), 8 * kMebibyte);

  EXPECT_EQ(source.ExistingPages(), 0u);
  EXPECT_EQ(target.ExistingPages(), 0u);
  close(file);
}

TEST(SparseBytesTest, OverlappingCopyEqualsMemmove) {
  SparseMemory memory(4 * kMebibyte);
  for (std::size_t i = 0; i < kMebibyte; ++i) memory.data()[i] = static_cast<char>(i * 7 / 5);
  const std::vector<char> before(memory.data(), memory.data() + kMebibyte);

  SparseCopy(memory.data() + 100, memory.data(), kMebibyte);

  EXPECT_EQ(std::memcmp(memory.data() + 100, before.data(), kMebibyte), 0);
}

TEST(SparseBytesTest, ClearWritesZeroesAndKeepsNeighbours) {
  SparseMemory memory(8 * kMebibyte);
  std::memset(memory.data(), 'x', 2 * kMebibyte);

  SparseClear(memory.data() + 10, 4 * kMebibyte);

  EXPECT_EQ(memory.ExistingPages(), 512u);
  EXPECT_EQ(memory.data()[9], 'x');
  const std::vector<char> zeroes(4 * kMebibyte, 0);
  EXPECT_EQ(std::memcmp(memory.data() + 10, zeroes.data(), zeroes.size()), 0);
}

// The parts of a range that ForWritten visits, from the range's beginning.
std::vector<std::pair<std::size_t, std::size_t>> Written(const char* base, std::size_t size_bytes) {
  struct Visits {
    const char* base;
    std::vector<std::pair<std::size_t, std::size_t>> parts;
  } visits{base, {}};
  const auto visit = [](void* context, const void* begin, const void* end) {
    auto& into = *static_cast<Visits*>(context);
    into.parts.emplace_back(static_cast<const char*>(begin) - into.base,
                            static_cast<const char*>(end) - into.base);
  };
  ForWritten(base, size_bytes, visit, &visits);
  return visits.parts;
}

using Parts = std::vector<std::pair<std::size_t, std::size_t>>;

TEST(SparseBytesTest, VisitsThePagesOfABlockThatWereWritten) {
  SparseMemory memory(64 * kMebibyte);
  const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
  NoteBlockMapping(base, 64 * kMebibyte, -1, false);
  memory.data()[10 * kPage + 5] = 'a';
  memory.data()[40 * kMebibyte] = 'b';

  const Parts parts = Written(memory.data() + 3, 64 * kMebibyte - 3);

  // The first page is read to see whether it may be.
  const Parts expected = {{0, kPage - 3},
                          {10 * kPage - 3, 11 * kPage - 3},
                          {40 * kMebibyte - 3, 40 * kMebibyte + kPage - 3}};
  EXPECT_EQ(parts, expected);
  ForgetMapping(base);
}

TEST(SparseBytesTest, VisitsAllOfMemoryOfWhichNothingIsKnown) {
  SparseMemory memory(8 * kMebibyte);
  EXPECT_EQ(Written(memory.data(), 8 * kMebibyte), (Parts{{0, 8 * kMebibyte}}))
      << "it may be forbidden, and then an access must fault";
}

}  // namespace
}  // namespace spillway::simulator
