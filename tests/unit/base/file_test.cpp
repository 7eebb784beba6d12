#include "base/file.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace spillway::base {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    char folder[] = "/tmp/spillway-file-XXXXXX";
    folder_ = mkdtemp(folder);
  }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string In(const std::string& name) const { return folder_ + "/" + name; }
  std::size_t FileCount() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_;
};

TEST_F(FileTest, ReadsBackWhatWasWritten) {
  const std::string bytes = std::string(3'000'000, 'x') + '\0' + "end";
  ASSERT_TRUE(WriteFile(In("a"), bytes).ok());
  EXPECT_TRUE(ReadFile(In("a")) == bytes);
  ASSERT_TRUE(WriteFile(In("a"), "").ok());
  EXPECT_TRUE(ReadFile(In("a")) == "");
}

TEST_F(FileTest, ReadsAFileOfReportedSizeZero) {
  EXPECT_TRUE(ReadFile("/proc/self/stat")->starts_with(std::to_string(getpid())));
  char place[8];
  EXPECT_EQ(ReadInto("/proc/self/stat", place).size(), sizeof place);
}

TEST_F(FileTest, NamesTheFileThatCannotBeRead) {
  const Result<std::string> missing = ReadFile(In("none"));
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_EQ(missing.text(), "cannot read " + In("none") + ": No such file or directory");
  EXPECT_EQ(ReadFile(folder_).error().code, EISDIR);
  char place[8];
  EXPECT_EQ(ReadInto(In("none").c_str(), place), "");
  EXPECT_EQ(ReadInto(folder_.c_str(), place), "");
}

TEST_F(FileTest, RefusesAFileBeyondTheCallersLimit) {
  ASSERT_TRUE(WriteFile(In("a"), "12345").ok());
  EXPECT_TRUE(ReadFile(In("a"), {.most_bytes = 5}) == "12345");
  EXPECT_EQ(ReadFile(In("a"), {.most_bytes = 4}).error().code, EFBIG);
  // A device without end and without a size.
  EXPECT_EQ(ReadFile("/dev/zero", {.most_bytes = 100'000}).error().code, EFBIG);
}

TEST_F(FileTest, NeitherFollowsLinksNorWaitsAtPipesInASharedFolder) {
  ASSERT_TRUE(WriteFile(In("a"), "text").ok());
  fs::create_symlink(In("a"), In("link"));
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(ReadFile(In("link")) == "text");
  EXPECT_EQ(ReadFile(In("link"), {.only_regular = true}).error().code, ELOOP);
  EXPECT_EQ(ReadFile(In("pipe"), {.only_regular = true}).error().why, "it is not a regular file");
  EXPECT_TRUE(ReadFile(In("a"), {.only_regular = true}) == "text");
}

std::atomic<int> interruptions{0};

bool Waits(pid_t thread) {
  char place[256];
  const std::string_view stat =
      ReadInto(("/proc/self/task/" + std::to_string(thread) + "/stat").c_str(), place);
  return stat.substr(std::min(stat.rfind(')'), stat.size())).starts_with(") S");
}

TEST_F(FileTest, ContinuesAfterShortReadsAndInterrupts) {
  // Given a pipe that delivers one byte at a time, and a signal at each wait for the next byte
  struct sigaction count {};
  count.sa_handler = [](int) { ++interruptions; };
  sigaction(SIGUSR1, &count, nullptr);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd from(ends[0]);
  std::thread writer([reader = pthread_self(), thread = gettid(), to = UniqueFd(ends[1])] {
    for (int i = 0; i < 50; ++i) {
      while (!Waits(thread)) sched_yield();
      pthread_kill(reader, SIGUSR1);
      while (interruptions <= i) sched_yield();
      EXPECT_EQ(WriteAll(to.get(), "x"), 0);
    }
  });

  const Result<std::string> read = ReadRest(from.get(), "the pipe");

  writer.join();
  EXPECT_TRUE(read == std::string(50, 'x')) << read.text();
}

TEST_F(FileTest, ReadsFromTheStartWhateverTheDescriptorsOffset) {
  ASSERT_TRUE(WriteFile(In("a"), "12345").ok());
  const UniqueFd file(open(In("a").c_str(), O_RDONLY | O_CLOEXEC));
  lseek(file.get(), 3, SEEK_SET);
  EXPECT_TRUE(ReadFirst(file.get(), 4) == "1234");
  EXPECT_EQ(ReadFirst(file.get(), 6).text(), "it is too short");
  EXPECT_EQ(ReadFirst(-1, 1).error().code, EBADF);
}

TEST_F(FileTest, ReportsAFullDisk) {
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(WriteAll(full.get(), "x"), ENOSPC);
  EXPECT_EQ(WriteFile("/dev/full", "x").text(), "cannot write /dev/full: No space left on device");
}

TEST_F(FileTest, ReplacesAFileAtomicallyAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(ReplaceFile(In("a"), "old").ok());
  ASSERT_TRUE(ReplaceFile(In("a"), "new", {.mode = 0640, .sync = true, .beside = ".tmp7"}).ok());
  EXPECT_TRUE(ReadFile(In("a")) == "new");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(FileTest, DoesNotWriteThroughAForeignLink) {
  ASSERT_TRUE(WriteFile(In("precious"), "kept").ok());
  fs::create_symlink(In("precious"), In("a.new"));
  ASSERT_TRUE(ReplaceFile(In("a"), "new").ok());
  EXPECT_TRUE(ReadFile(In("precious")) == "kept");
  EXPECT_FALSE(fs::is_symlink(In("a")));
}

TEST_F(FileTest, KeepsTheOldBytesWhenTheNewOnesDoNotFit) {
  ASSERT_TRUE(ReplaceFile(In("a"), "old").ok());
  // The limit holds for the whole process.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(TryReplaceFile(In("a").c_str(), std::string(2000, 'x')) == EFBIG ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ReadFile(In("a")) == "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(FileTest, LeavesNoTemporaryFileBesideAFolderThatCannotBeReplaced) {
  fs::create_directory(In("folder"));
  EXPECT_EQ(TryReplaceFile(In("folder").c_str(), "new"), EISDIR);
  EXPECT_EQ(TryReplaceFile((In("none") + "/a").c_str(), "new"), ENOENT);
  EXPECT_EQ(TryReplaceFile(std::string(5000, 'a').c_str(), "new"), ENAMETOOLONG);
  EXPECT_EQ(FileCount(), 1u);
}

}  // namespace
}  // namespace spillway::base
