#include "interposer/driver/driver_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.h"

namespace spillway::driver {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A loader cache in glibc's layout: a header of 48 bytes, 24 bytes a row, then the strings.
std::string LdCache(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string file = "glibc-ld.so.cache1.1";
  file.resize(48 + 24 * rows.size());
  const auto put = [&](size_t at, uint32_t value) {
    std::memcpy(file.data() + at, &value, sizeof(value));
  };
  put(20, static_cast<uint32_t>(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    put(48 + 24 * i + 4, static_cast<uint32_t>(file.size()));
    file += rows[i].first + '\0';
    put(48 + 24 * i + 8, static_cast<uint32_t>(file.size()));
    file += rows[i].second + '\0';
  }
  return file;
}

TEST(CachedPathsTest, ReturnsTheLibrarysRowsInOrder) {
  const std::string cache = LdCache({{"libcublas.so.13", "/opt/libcublas.so.13"},
                                     {"libcuda.so.1", "/opt/gpu/libcuda.so.1"},
                                     {"libcuda.so", "/opt/gpu/libcuda.so"},
                                     {"libcuda.so.1", "/usr/lib32/libcuda.so.1"}});
  EXPECT_THAT(CachedPaths(cache, "libcuda.so.1"),
              ElementsAre("/opt/gpu/libcuda.so.1", "/usr/lib32/libcuda.so.1"));
}

TEST(CachedPathsTest, DamagedCacheYieldsNothingAndIsNotReadPastItsEnd) {
  const std::string whole = LdCache({{"libcuda.so.1", "/opt/gpu/libcuda.so.1"}});
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::vector<char> exactly(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length));
    EXPECT_THAT(CachedPaths({exactly.data(), exactly.size()}, "libcuda.so.1"), IsEmpty()) << length;
  }
  std::string too_many_rows = whole;
  too_many_rows[23] = '\x7f';
  EXPECT_THAT(CachedPaths(too_many_rows, "libcuda.so.1"), IsEmpty());
  std::string path_far_away = whole;
  path_far_away[48 + 8 + 3] = '\x7f';
  EXPECT_THAT(CachedPaths(path_far_away, "libcuda.so.1"), IsEmpty());
}

TEST(CachedPathsTest, ReadsThisMachinesCache) {
  EXPECT_THAT(CachedPaths(base::ReadFile("/etc/ld.so.cache").value_or(""), "libc.so.6"),
              Contains(HasSubstr("/libc.so.6")));
}

TEST(DriverCandidatesTest, FollowTheLoadersOrder) {
  const std::string cache = LdCache({{"libcuda.so.1", "/opt/gpu/libcuda.so.1"}});
  const std::vector<std::string> paths = DriverCandidates("/first::/second", cache);
  ASSERT_GE(paths.size(), 4u);
  EXPECT_EQ(paths[0], "/first/libcuda.so.1");
  EXPECT_EQ(paths[1], "/second/libcuda.so.1");
  EXPECT_EQ(paths[2], "/opt/gpu/libcuda.so.1");
  EXPECT_THAT(paths, Contains("/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
  EXPECT_THAT(paths, Contains("/usr/lib/wsl/lib/libcuda.so.1"));
}

TEST(DriverCandidatesTest, NeverNameTheToolkitsStub) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("driver_search_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "stubs");
  std::filesystem::copy_file("/bin/true", folder / "stubs" / "libcuda.so.1");
  std::filesystem::create_directories(folder / "linked");
  std::filesystem::create_symlink(folder / "stubs" / "libcuda.so.1",
                                  folder / "linked" / "libcuda.so.1");

  const std::string library_path = (folder / "stubs").string() + ":" + (folder / "linked").string();
  EXPECT_THAT(DriverCandidates(library_path.c_str(), ""), Each(Not(HasSubstr(folder.string()))));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spillway::driver
