#include "interposer/record/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "base/file.h"
#include "base/pause.h"
#include "base/quiet_thread.h"
#include "interposer/config/config.h"
#include "interposer/record/job_trace.h"
#include "interposer/record/trace_file.h"
#include "interposer/record/trace_queue.h"

namespace spillway::interposer {

using base::Pause;

namespace {

constexpr long kPauseNs = 2'000'000;
constexpr int kPausesPerFlush = 10;
constexpr int kExitPatience = 5'000;  // pauses of a millisecond
constexpr std::size_t kMostJobs = 64;

constinit std::atomic<bool> started{false};
constinit std::atomic<bool> program_ends{false};
constinit std::atomic<bool> ended{true};
constinit std::atomic<pid_t> pid{0};
constinit std::atomic<TraceQueue*> queue{nullptr};
constinit std::atomic<JobTrace*> jobs[kMostJobs] = {};

std::string PathOfThisProcess() {
  const Config& config = ProcessConfig();
  const bool is_child = config.job_pid && *config.job_pid != getpid();
  return is_child ? config.trace_path + "." + std::to_string(getpid()) : config.trace_path;
}

std::string CommandOfThisProcess() {
  char words[4096];
  std::string command(base::ReadInto("/proc/self/cmdline", words));
  if (!command.empty()) command.pop_back();  // the last argument's end
  for (char& c : command) c = c ? c : ' ';
  return command;
}

void SayUnwritten(const char* path, int error) {
  fprintf(stderr, "spillway: the trace could not be written to %s: %s; the job goes on without\n",
          path, base::ErrnoText(error));
}

class Writer {
 public:
  bool Open() {
    path_ = PathOfThisProcess();
    const std::string command = CommandOfThisProcess();
    if (file_.Open(path_.c_str(), {.command = command.c_str(), .pid = getpid()})) return true;
    SayUnwritten(path_.c_str(), file_.error());
    return false;
  }

  void Run() {
    for (int pauses = 0; !program_ends.load(std::memory_order_acquire); ++pauses) {
      Drain();
      if (pauses % kPausesPerFlush == 0) Flush();
      Pause(kPauseNs);
    }
    Drain();
    file_.Finish();
    SayOnceWhenItFailed();
  }

 private:
  void Drain() {
    TraceEvent event;
    while (queue.load(std::memory_order_relaxed)->Take(&event)) file_.Add(event);
    const std::uint64_t lost = queue.load(std::memory_order_relaxed)->lost();
    if (lost != lost_) file_.AddLost(lost);
    lost_ = lost;
  }

  void Flush() {
    file_.Flush();
    SayOnceWhenItFailed();
  }

  void SayOnceWhenItFailed() {
    if (file_.error() == 0 || said_) return;
    said_ = true;
    internal::trace_is_on.store(false, std::memory_order_relaxed);
    SayUnwritten(path_.c_str(), file_.error());
  }

  TraceFile file_;
  std::string path_;
  std::uint64_t lost_ = 0;
  bool said_ = false;
};

void* WriterThread(void* writer) {
  static_cast<Writer*>(writer)->Run();
  ended.store(true, std::memory_order_release);
  return nullptr;
}

// The driver may be shut down: pending entries get the host's times.
void AtExit() {
  if (pid.load() != getpid() || ended.load()) return;
  for (auto& job : jobs) {
    if (JobTrace* const left = job.load()) left->Settle();
  }
  internal::trace_is_on.store(false, std::memory_order_relaxed);
  program_ends.store(true, std::memory_order_release);
  for (int i = 0; i < kExitPatience && !ended.load(std::memory_order_acquire); ++i)
    Pause(1'000'000);
}

}  // namespace

void StartTrace() {
  if (ProcessConfig().trace_path.empty() || started.exchange(true)) return;
  auto* const writer = new Writer;  // the thread's, never freed
  if (!writer->Open()) return;
  pid.store(getpid());
  queue.store(new TraceQueue);
  ended.store(false);
  atexit(&AtExit);
  if (base::StartDetachedThread("spillway trace", &WriterThread, writer))
    internal::trace_is_on.store(true, std::memory_order_release);
  else
    ended.store(true);
}

void PutTrace(const TraceEvent& event) {
  if (TraceQueue* const to = queue.load(std::memory_order_acquire)) to->Put(event);
}

void AddJobToTrace(JobTrace* job) {
  for (auto& place : jobs) {
    JobTrace* none = nullptr;
    if (place.compare_exchange_strong(none, job)) return;
  }
}

void RemoveJobFromTrace(JobTrace* job) {
  for (auto& place : jobs) {
    JobTrace* expected = job;
    place.compare_exchange_strong(expected, nullptr);
  }
}

}  // namespace spillway::interposer
