#include "protocol/bulk.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace spillway::protocol {
namespace {

TEST(BulkTest, DocumentReadsBackAndCannotBeChanged) {
  const base::UniqueFd file = SealedCopy("the whole text");
  ASSERT_TRUE(file);

  EXPECT_EQ(ReadSealed(file.get(), 14), "the whole text");
  EXPECT_LT(write(file.get(), "x", 1), 0);
  EXPECT_NE(ftruncate(file.get(), 0), 0);
}

TEST(BulkTest, UnsealedOrWrongSizedFilesAreRefused) {
  const base::UniqueFd sealed = SealedCopy("the whole text");
  const base::UniqueFd open(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));

  EXPECT_FALSE(ReadSealed(sealed.get(), 13));
  EXPECT_FALSE(ReadSealed(sealed.get(), uint64_t{1} << 40));
  EXPECT_FALSE(ReadSealed(open.get(), 0));
  EXPECT_FALSE(ReadSealed(-1, 0));
}

}  // namespace
}  // namespace spillway::protocol
