#include "agent/pool/slab_records.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

namespace spillway::agent {
namespace {

TEST(SlabRecordsTest, SecondReaderReadsWrittenRecords) {
  auto records = SlabRecords::Make();
  ASSERT_TRUE(records.has_value());
  const SlabRecord record = {SlabRecord::Use::kLeased, 4711, 65536, 4096, 1, 0,
                             {{1000, "job 7"}, 99}};
  records->Write(5, record);

  const auto other = SlabRecords::Adopt(base::UniqueFd(fcntl(records->file(), F_DUPFD_CLOEXEC, 0)));

  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->Read(5), record);
  EXPECT_EQ(other->Read(4), std::nullopt);
  records->Erase(5);
  EXPECT_EQ(other->Read(5), std::nullopt);
}

TEST(SlabRecordsTest, RefusesOtherFiles) {
  base::UniqueFd file(memfd_create("something", MFD_CLOEXEC));

  EXPECT_FALSE(SlabRecords::Adopt(std::move(file)).has_value());
}

TEST(SlabRecordsTest, LongNamesAreCut) {
  auto records = SlabRecords::Make();
  ASSERT_TRUE(records.has_value());
  SlabRecord record;
  record.holder.job.name = std::string(200, 'n');

  records->Write(0, record);

  EXPECT_EQ(records->Read(0)->holder.job.name, std::string(127, 'n'));
}

}  // namespace
}  // namespace spillway::agent
