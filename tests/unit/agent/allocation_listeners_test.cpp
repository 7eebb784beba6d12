#include "agent/loop/allocation_listeners.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "protocol/socket_channel.h"
#include "tests/support/scratch_folder.h"

namespace spillway::agent {
namespace {

namespace fs = std::filesystem;

class AllocationListenersTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& name) const {
    return AllocationListeners::PathOf(name, folder_ + "/jobs/agent.sock").value_or("");
  }
  ino_t FolderOf(const std::string& name) const {
    struct stat facts {};
    stat(fs::path(PathOf(name)).parent_path().c_str(), &facts);
    return facts.st_ino;
  }
  bool Answers(const std::string& name) const {
    return static_cast<bool>(protocol::ConnectTo(PathOf(name)));
  }

  const test::ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
};

TEST_F(AllocationListenersTest, EachHasAFolderWithItsSocketAlone) {
  EXPECT_EQ(PathOf("a"), folder_ + "/allocations/a/agent.sock");
  const mode_t mask = umask(0077);
  AllocationListeners listeners;
  for (const char* const name : {"a", "b"}) {
    const auto opened = listeners.Open(name, PathOf(name));
    ASSERT_TRUE(opened.ok()) << opened.text();
    EXPECT_EQ(listeners.Find((*opened)->number()), *opened);
    EXPECT_EQ((*opened)->entrance(), Entrance::kAllocation);
    EXPECT_EQ((*opened)->allocation(), name);
  }
  umask(mask);
  EXPECT_EQ(*listeners.Open("a", PathOf("a")), nullptr) << "it is open already";
  struct stat facts {};
  stat((folder_ + "/allocations/a").c_str(), &facts);
  EXPECT_EQ(facts.st_mode & 0777, 0755U);
  // Regression: local users reached every container's socket by its path.
  stat((folder_ + "/allocations").c_str(), &facts);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  stat(PathOf("a").c_str(), &facts);
  EXPECT_EQ(facts.st_mode & 0777, 0666U);

  EXPECT_TRUE(listeners.Close("a").ok());
  EXPECT_FALSE(fs::exists(folder_ + "/allocations/a"));
  EXPECT_FALSE(Answers("a"));
  EXPECT_TRUE(Answers("b"));
}

TEST_F(AllocationListenersTest, AfterACrashTheSocketIsInTheSameFolder) {
  ino_t before = 0;
  {
    AllocationListeners crashed;
    ASSERT_TRUE(crashed.Open("a", PathOf("a")).ok());
    before = FolderOf("a");
  }
  EXPECT_FALSE(Answers("a"));
  AllocationListeners next;
  ASSERT_TRUE(next.Open("a", PathOf("a")).ok());
  EXPECT_EQ(FolderOf("a"), before);
  EXPECT_TRUE(Answers("a"));
  // After an orderly end the folder stays, too.
  next.RemovePaths();
  EXPECT_EQ(FolderOf("a"), before);
  EXPECT_FALSE(fs::exists(PathOf("a")));
}

TEST_F(AllocationListenersTest, TheNextAgentTakesTheSocketOver) {
  AllocationListeners former;
  const auto opened = former.Open("a", PathOf("a"));
  ASSERT_TRUE(opened.ok());
  const base::UniqueFd client = protocol::ConnectTo(PathOf("a"));
  Supervisor::File passed = (*opened)->ToPassOn();
  EXPECT_TRUE(AllocationListeners::IsKnownName(passed.name));
  passed.file = dup(passed.file);

  AllocationListeners next;
  next.TakeOver(passed);
  const auto taken = next.Open("a", PathOf("a"));

  ASSERT_TRUE(taken.ok()) << taken.text();
  EXPECT_TRUE(protocol::AcceptFrom((*taken)->file())) << "the client was waiting";
  EXPECT_TRUE(next.Close("a").ok());
  EXPECT_FALSE(fs::exists(folder_ + "/allocations/a"));
}

TEST_F(AllocationListenersTest, AFolderThatOthersCanChangeIsRefused) {
  AllocationListeners listeners;
  fs::create_directories(folder_ + "/elsewhere");
  fs::create_directory_symlink(folder_ + "/elsewhere", folder_ + "/allocations");
  EXPECT_FALSE(listeners.Open("a", PathOf("a")).ok());
  fs::remove(folder_ + "/allocations");
  fs::create_directories(folder_ + "/allocations/a");
  fs::permissions(folder_ + "/allocations/a", fs::perms::all);
  EXPECT_FALSE(listeners.Open("a", PathOf("a")).ok());
  EXPECT_TRUE(fs::is_empty(folder_ + "/elsewhere"));
}

// Regression: an agent under another user refused the folder, and an open one stayed open.
TEST_F(AllocationListenersTest, AFolderThatAnEarlierAgentLeftBecomesOurs) {
  for (const std::string& folder : {folder_ + "/allocations", folder_ + "/allocations/a"}) {
    fs::create_directory(folder);
    fs::permissions(folder, fs::perms(0755));
    if (geteuid() == 0) {
      ASSERT_EQ(chown(folder.c_str(), 4242, 4242), 0);
    }
  }
  const ino_t before = FolderOf("a");
  AllocationListeners listeners;
  const auto opened = listeners.Open("a", PathOf("a"));
  ASSERT_TRUE(opened.ok()) << opened.text();
  EXPECT_EQ(FolderOf("a"), before) << "containers have mounted it";
  for (const auto& [folder, mode] : {std::pair("/allocations", 0700U), {"/allocations/a", 0755U}}) {
    struct stat facts {};
    stat((folder_ + folder).c_str(), &facts);
    EXPECT_EQ(facts.st_mode & 07777, mode) << folder;
    EXPECT_EQ(facts.st_uid, geteuid()) << folder;
  }
}

// Regression: it removed the folder that running containers had mounted.
TEST_F(AllocationListenersTest, AFailedOpenLeavesAFolderThatWasThere) {
  fs::create_directories(folder_ + "/allocations/a");
  fs::permissions(folder_ + "/allocations/a", fs::perms(0755));
  const ino_t before = FolderOf("a");
  AllocationListeners listeners;
  for (const char* const name : {"a", "b"}) {
    const std::string too_long = folder_ + "/allocations/" + name + "/" + std::string(200, 's');
    EXPECT_FALSE(listeners.Open(name, too_long).ok());
  }
  EXPECT_TRUE(fs::is_directory(folder_ + "/allocations/a"));
  EXPECT_FALSE(fs::exists(folder_ + "/allocations/b")) << "it has made this one itself";
  ASSERT_TRUE(listeners.Open("a", PathOf("a")).ok());
  EXPECT_EQ(FolderOf("a"), before);
}

TEST_F(AllocationListenersTest, NeedsAPathThatASocketCanHave) {
  const auto why_not = [](const std::string& name, const std::string& jobs) {
    return !AllocationListeners::PathOf(name, jobs).ok();
  };
  EXPECT_TRUE(why_not("a", ""));
  EXPECT_TRUE(why_not("a", "@jobs"));
  EXPECT_TRUE(why_not("a", "/agent.sock"));
  EXPECT_TRUE(why_not(std::string(63, 'a'), "/" + std::string(50, 'b') + "/jobs/agent.sock"));
  EXPECT_FALSE(why_not(std::string(63, 'a'), "/run/spillway/jobs/agent.sock"));
}

}  // namespace
}  // namespace spillway::agent
