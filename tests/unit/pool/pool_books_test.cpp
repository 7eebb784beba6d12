#include "agent/pool/pool_books.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace spillway::agent {
namespace {

TEST(PoolBooksTest, AnotherReadsWhatWasWritten) {
  auto books = PoolBooks::Make();
  ASSERT_TRUE(books.has_value());
  const SlabRecord record = {SlabRecord::Use::kLeased, 4711, 65536, 4096, 1, 0, {{1000, "job 7"}, 99}};
  books->Write(5, record);

  const auto other = PoolBooks::Adopt(base::UniqueFd(fcntl(books->file(), F_DUPFD_CLOEXEC, 0)));

  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->Read(5), record);
  EXPECT_EQ(other->Read(4), std::nullopt);
  books->Erase(5);
  EXPECT_EQ(other->Read(5), std::nullopt);
}

TEST(PoolBooksTest, OtherFilesAreNoBooks) {
  base::UniqueFd file(memfd_create("something", MFD_CLOEXEC));

  EXPECT_FALSE(PoolBooks::Adopt(std::move(file)).has_value());
}

TEST(PoolBooksTest, LongNamesAreCut) {
  auto books = PoolBooks::Make();
  ASSERT_TRUE(books.has_value());
  SlabRecord record;
  record.holder.job.name = std::string(200, 'n');

  books->Write(0, record);

  EXPECT_EQ(books->Read(0)->holder.job.name, std::string(127, 'n'));
}

}  // namespace
}  // namespace spillway::agent
