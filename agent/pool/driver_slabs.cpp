#include "agent/pool/driver_slabs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace spillway::agent {
namespace {

// A killed process that is stuck in the driver may die late: later calls reap it.
constexpr int kMostReapPolls = 100;
constexpr auto kReapPollPause = std::chrono::milliseconds(5);

// The child gets default signals and none of the agent's files.
int Spawn(const std::vector<std::string>& command, int socket, pid_t* worker) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_t how;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, kSlabWorkerFile);
  posix_spawn_file_actions_addclosefrom_np(&files, kSlabWorkerFile + 1);
  const int problem = posix_spawn(worker, words.front(), &files, &how, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  return problem;
}

}  // namespace

DriverSlabs::DriverSlabs(std::vector<std::string> command, int patience_ms)
    : command_(std::move(command)), patience_ms_(patience_ms), stop_(eventfd(0, EFD_CLOEXEC)) {}

base::Status DriverSlabs::Start() {
  if (socket_) return base::Ok();
  Reap();
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return base::ErrnoError("no socket for the process that asks the driver");
  socket_.Reset(pair[0]);
  const base::UniqueFd theirs(pair[1]);
  const int problem = Spawn(command_, theirs.get(), &worker_);
  if (problem == 0) return base::Ok();
  worker_ = 0;
  socket_.Reset();
  errno = problem;
  return base::ErrnoError("the process that asks the driver cannot be started");
}

bool DriverSlabs::AwaitReply() const {
  pollfd watched[] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  return poll(watched, 2, patience_ms_) > 0 && watched[1].revents == 0;
}

DriverSlabs::Answer DriverSlabs::Ask(const SlabRequest& request) {
  Answer answer;
  if (const base::Status started = Start(); !started.ok()) {
    answer.why = started.text();
    return answer;
  }
  const bool is_silent = SendRequest(socket_.get(), request) && !AwaitReply();
  std::optional<ReceivedReply> received;
  if (!is_silent) received = ReceiveReply(socket_.get());
  if (!received) {
    Rest();
    answer.why =
        is_silent ? "the driver does not answer" : "the process that asks the driver has ended";
    return answer;
  }
  const SlabReply& reply = received->reply;
  if (reply.what == SlabReply::What::kNoMemory) answer.outcome = Outcome::kNoMemory;
  if (reply.what == SlabReply::What::kRefused) answer.why = reply.why;
  if (reply.what != SlabReply::What::kMade) return answer;
  answer.outcome = Outcome::kMade;
  if (received->file)
    answer.slab = SlabFile{std::move(received->file), request.size_bytes, 0, reply.node, true};
  return answer;
}

// If no descriptor was left for the slab's file, the slab is lost, but the driver works.
DriverSlabs::Answer DriverSlabs::Make(int64_t size_bytes, int node) {
  Answer answer = Ask({size_bytes, node, 0});
  if (answer.outcome == Outcome::kMade && !answer.slab) answer.outcome = Outcome::kNoMemory;
  return answer;
}

DriverSlabs::Answer DriverSlabs::Try(int64_t size_bytes) {
  Answer answer = Ask({size_bytes, kAnyNode, 1});
  Rest();
  return answer;
}

void DriverSlabs::Rest() {
  socket_.Reset();
  if (worker_ == 0) return;
  kill(worker_, SIGKILL);
  unreaped_.push_back(worker_);
  worker_ = 0;
  for (int poll = 0; poll < kMostReapPolls; ++poll) {
    Reap();
    if (unreaped_.empty()) return;
    std::this_thread::sleep_for(kReapPollPause);
  }
}

void DriverSlabs::Reap() {
  std::erase_if(unreaped_, [](pid_t worker) { return waitpid(worker, nullptr, WNOHANG) != 0; });
}

void DriverSlabs::Stop() { eventfd_write(stop_.get(), 1); }

}  // namespace spillway::agent
