#include "deploy/slurm/totals_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"

namespace spillway::slurm {
namespace {

TEST(TotalsLogTest, EachJobIsALine) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("totals." + std::to_string(getpid()))).string();
  const EndedJob ended = {.job = 5, .user = 1000, .totals = {.peak_bytes = 7, .stall_ns = 9}};
  ASSERT_TRUE(AppendToLog(path, TotalsLine(ended), 0).ok());
  ASSERT_TRUE(AppendToLog(path, "job=6", 1).ok());

  EXPECT_EQ(base::ReadFile(path),
            "time=1970-01-01T00:00:00Z job=5 uid=1000 peak_bytes=7 allocated_bytes=0 "
            "to_host_bytes=0 to_device_bytes=0 stall_ns=9 refused_allocations=0\n"
            "time=1970-01-01T00:00:01Z job=6\n");
  std::filesystem::remove(path);
}

TEST(TotalsLogTest, AFileThatCannotBeWrittenIsNamed) {
  EXPECT_EQ(AppendToLog("/nonexistent/log", "job=6", 1).text(),
            "/nonexistent/log: No such file or directory");
}

}  // namespace
}  // namespace spillway::slurm
