// The trace file (one event a line, valid at every moment) and the queue in front of it.
#include "interposer/record/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "interposer/record/trace_names.h"
#include "interposer/record/trace_queue.h"

namespace spillway::interposer {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TraceFileTest : public ::testing::Test {
 protected:
  ~TraceFileTest() override { std::remove(path_.c_str()); }
  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  const std::string path_ = ::testing::TempDir() + "trace_file_" + std::to_string(getpid());
  const std::unique_ptr<TraceFile> file_ = std::make_unique<TraceFile>();
};

TraceEvent Operation(const char* name, std::int64_t begin_ns, std::int64_t end_ns) {
  return {.kind = TraceKind::kOperation,
          .stream = 2,
          .begin_ns = begin_ns,
          .end_ns = end_ns,
          .name = name};
}

TEST_F(TraceFileTest, FinishedFileIsACompleteArrayOfEvents) {
  // Given a trace of one operation and one copy
  ASSERT_TRUE(file_->Open(path_.c_str(), {.command = "train --fast", .pid = 7}));
  file_->Add(Operation("conv", 1500, 4001));
  file_->Add({.kind = TraceKind::kCopyOut,
              .cause = TraceCause::kRoom,
              .begin_ns = 5000,
              .end_ns = 7000,
              .allocation = 12,
              .values = {4096}});

  file_->Finish();

  // Then it names the process, each operation's row, and each copy's reason
  const std::string text = Text();
  EXPECT_THAT(text, StartsWith("[\n{\"name\": \"spillway\""));
  EXPECT_THAT(text, HasSubstr("\"process\": 7, \"command\": \"train --fast\""));
  EXPECT_THAT(
      text,
      HasSubstr(
          "{\"name\": \"conv\", \"cat\": \"operation\", \"ph\": \"X\", \"pid\": 0, \"tid\": 12, "
          "\"ts\": 1.500, \"dur\": 2.501, \"args\": {}}"));
  EXPECT_THAT(text, HasSubstr("\"args\": {\"buffer\": 12, \"bytes\": 4096, \"cause\": \"room\"}}"));
  EXPECT_THAT(text, EndsWith("}\n]\n"));
}

TEST_F(TraceFileTest, NamesAreEscapedAndTruncated) {
  ASSERT_TRUE(file_->Open(path_.c_str(), {.command = "a\"b\\c\n\xff\xc3\xa9", .pid = 1}));
  const std::string long_name(100'000, 'x');
  file_->Add(Operation(long_name.c_str(), 0, 1));
  file_->Finish();
  EXPECT_THAT(Text(), HasSubstr("\"command\": \"a\\\"b\\\\c\\u000a\\u00ff\xc3\xa9\""));
  EXPECT_LT(Text().size(), 2000u);
}

TEST_F(TraceFileTest, KilledProcessLeavesAFileThatLacksOnlyTheBracket) {
  const pid_t child = fork();
  if (child == 0) {
    if (!file_->Open(path_.c_str(), {.command = "train", .pid = 1})) _exit(1);
    for (int i = 0; i < 5000; ++i) file_->Add(Operation("conv", i * 1000, i * 1000 + 500));
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  const std::string text = Text();
  EXPECT_GT(text.size(), 100'000u);
  EXPECT_THAT(text, EndsWith("}"));
  EXPECT_THAT(text, Not(HasSubstr("]\n")));
}

TEST_F(TraceFileTest, FileEndsAfterItsLastWholeEventWhenTheDiskIsFull) {
  // Given a limit on file sizes, in a process of its own
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    if (!file_->Open(path_.c_str(), {.command = "train", .pid = 1})) _exit(1);
    for (int i = 0; i < 5000; ++i) file_->Add(Operation("conv", i * 1000, i * 1000 + 500));
    file_->Finish();
    _exit(file_->error() == EFBIG && !file_->is_open() ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);

  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(Text(), EndsWith("}"));
  EXPECT_LT(Text().size(), 100'000u);
}

TEST_F(TraceFileTest, ReportsWhyItCannotBeWritten) {
  EXPECT_FALSE(file_->Open("/nowhere/trace.json", {}));
  EXPECT_EQ(file_->error(), ENOENT);
  file_->Add(Operation("conv", 0, 1));
  file_->Finish();
}

TEST_F(TraceFileTest, IterationIsASpanFromItsBeginToTheNext) {
  ASSERT_TRUE(file_->Open(path_.c_str(), {}));
  file_->Add({.kind = TraceKind::kIteration, .begin_ns = 1000, .end_ns = 1000});
  file_->Add({.kind = TraceKind::kIteration, .begin_ns = 9000, .end_ns = 9000, .values = {3}});
  file_->Finish();
  EXPECT_THAT(
      Text(),
      HasSubstr("{\"name\": \"iteration 1\", \"cat\": \"iteration\", \"ph\": \"X\", \"pid\": 0, "
                "\"tid\": 1, \"ts\": 1.000, \"dur\": 8.000, \"args\": {\"misses\": 3}}"));
  EXPECT_THAT(Text(), Not(HasSubstr("iteration 2")));
}

TEST(TraceQueueTest, OperationsLeaveSpaceForRarerEventsAndRefusedEventsAreCounted) {
  const auto queue = std::make_unique<TraceQueue>();
  std::uint64_t taken = 0;
  while (queue->Put(Operation("conv", 0, 1))) ++taken;
  EXPECT_EQ(taken, TraceQueue::kPlaces / 4 * 3);
  const TraceEvent copy{.kind = TraceKind::kCopyIn};
  while (queue->Put(copy)) ++taken;
  EXPECT_EQ(taken, TraceQueue::kPlaces);
  EXPECT_EQ(queue->lost(), 2u);
}

TEST(TraceQueueTest, ConcurrentWritersLoseAndDuplicateNothing) {
  const auto queue = std::make_unique<TraceQueue>();
  constexpr std::int64_t kEach = 20'000;
  std::vector<std::thread> writers;
  for (std::uint32_t writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&queue, writer] {
      for (std::int64_t i = 0; i < kEach;)
        i += queue->Put({.stream = writer, .begin_ns = i}) ? 1 : 0;
    });
  }
  std::int64_t next[3] = {};
  for (TraceEvent event; next[0] + next[1] + next[2] < 3 * kEach;) {
    if (!queue->Take(&event)) continue;
    ASSERT_EQ(event.begin_ns, next[event.stream]++);
  }
  for (std::thread& writer : writers) writer.join();
}

TEST(TraceNamesTest, AreReadableAndKeptOnce) {
  EXPECT_EQ(KnownTraceName(77), nullptr);
  const char* const kept = KeepTraceName(77, "_ZN9workloads10sgd_updateIfEEvPT_i");
  EXPECT_STREQ(kept, "workloads::sgd_update<float>");
  EXPECT_EQ(KnownTraceName(77), kept);
  EXPECT_EQ(KeepTraceName(77, "another"), kept);
  EXPECT_STREQ(KeepTraceName(78, "cublas_gemm"), "cublas_gemm");
}

}  // namespace
}  // namespace spillway::interposer
