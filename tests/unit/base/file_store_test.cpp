#include "base/file_store.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>

namespace spillway::base {
namespace {

namespace fs = std::filesystem;

Result<std::string> Parse(const std::string& bytes) {
  if (bytes.starts_with("good")) return bytes;
  return Error{"it is not good"};
}

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() {
    char folder[] = "/tmp/spillway-store-XXXXXX";
    folder_ = mkdtemp(folder);
    store_.emplace(folder_, FileStore::Rules{.ending = ".kept", .most_file_bytes = 100});
  }
  ~FileStoreTest() override { fs::remove_all(folder_); }

  std::string NameOf(std::uint64_t number) const { return store_->NameOf(std::array{number}); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const FileStore::Entry& entry : store_->List()) names.push_back(entry.name);
    return names;
  }

  std::string folder_;
  std::optional<FileStore> store_;
};

TEST_F(FileStoreTest, NamesFilesByTheirKeys) {
  const std::array<std::uint64_t, 2> key = {0xabc, ~std::uint64_t{0}};
  EXPECT_EQ(store_->NameOf(key), "0000000000000abc-ffffffffffffffff.kept");
  std::array<std::uint64_t, 2> read{};
  EXPECT_TRUE(store_->KeyOf(store_->NameOf(key), read));
  EXPECT_EQ(read, key);
  for (const char* other :
       {"", "0000000000000abc.kept", "0000000000000abc-fffffffffffffff.kept",
        "0000000000000ABC-ffffffffffffffff.kept", "0000000000000abc-ffffffffffffffff.new"})
    EXPECT_FALSE(store_->KeyOf(other, read)) << other;
}

TEST_F(FileStoreTest, ReadsBackAndListsMostRecentlyUsedFirst) {
  ASSERT_TRUE(store_->Write(NameOf(1), "good 1").ok());
  ASSERT_TRUE(store_->Write(NameOf(2), "good 2").ok());
  EXPECT_EQ(Names(), (std::vector<std::string>{NameOf(2), NameOf(1)}));
  store_->MarkUsed(NameOf(1));
  EXPECT_EQ(Names(), (std::vector<std::string>{NameOf(1), NameOf(2)}));
  EXPECT_TRUE(store_->Read(NameOf(2), Parse) == "good 2");
  EXPECT_EQ(store_->List(FileStore::PrefixOf(std::array{std::uint64_t{1}})).size(), 0u);
}

TEST_F(FileStoreTest, DiscardsUnreadableFilesAndReportsIt) {
  ASSERT_TRUE(store_->Write(NameOf(1), "bad").ok());
  ASSERT_TRUE(store_->Write(NameOf(2), "good" + std::string(100, 'x')).ok());
  EXPECT_EQ(store_->Read(NameOf(1), Parse).text(),
            store_->PathOf(NameOf(1)) + " is discarded: it is not good");
  EXPECT_EQ(store_->Read(NameOf(2), Parse).text(),
            store_->PathOf(NameOf(2)) + " is discarded: it cannot be read");
  EXPECT_TRUE(Names().empty());
}

TEST_F(FileStoreTest, NeitherListsNorReadsALink) {
  ASSERT_TRUE(WriteFile(folder_ + "/precious", "good").ok());
  fs::create_symlink(folder_ + "/precious", store_->PathOf(NameOf(1)));
  EXPECT_TRUE(Names().empty());
  EXPECT_FALSE(store_->Read(NameOf(1), Parse));
  EXPECT_TRUE(fs::exists(folder_ + "/precious"));
}

TEST_F(FileStoreTest, RemovesLeastRecentlyUsed) {
  for (std::uint64_t number : {1, 2, 3, 4}) ASSERT_TRUE(store_->Write(NameOf(number), "good").ok());
  store_->MarkUsed(NameOf(1));
  store_->RemoveLongestUnused(8);
  EXPECT_EQ(Names(), (std::vector<std::string>{NameOf(1), NameOf(4)}));
}

TEST_F(FileStoreTest, RemovesLeftoversOfAKilledProcess) {
  ASSERT_TRUE(store_->Write(NameOf(1), "good").ok());
  const std::string left = store_->PathOf(NameOf(1)) + ".tmp99";
  ASSERT_TRUE(WriteFile(left, "half").ok());
  store_->RemoveUnfinished(3'600'000'000'000);
  EXPECT_TRUE(fs::exists(left));
  store_->RemoveUnfinished(0);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_EQ(Names().size(), 1u);
}

TEST_F(FileStoreTest, ReportsWhyItCannotWrite) {
  const FileStore nowhere(folder_ + "/none", {.ending = ".kept", .most_file_bytes = 100});
  EXPECT_EQ(nowhere.Write("a.kept", "good").error().code, ENOENT);
  EXPECT_TRUE(nowhere.List().empty());
}

}  // namespace
}  // namespace spillway::base
