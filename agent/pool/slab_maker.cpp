#include "agent/pool/slab_maker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace spillway::agent {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(200);

}  // namespace

ThreadedSlabMaker::ThreadedSlabMaker(int64_t slab_bytes, HugePages huge, const Topology* topology,
                                     std::vector<std::string> drivers_worker)
    : slab_bytes_(slab_bytes),
      huge_(huge),
      topology_(topology),
      ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      makes_drivers_(!drivers_worker.empty()),
      driver_(makes_drivers_ ? std::make_unique<DriverSlabs>(std::move(drivers_worker)) : nullptr),
      thread_([this] { Main(); }) {}

ThreadedSlabMaker::~ThreadedSlabMaker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (driver_) driver_->Stop();
  }
  asked_.notify_one();
  thread_.join();
}

void ThreadedSlabMaker::Ask(int node) {
  {
    const std::lock_guard lock(mutex_);
    nodes_.push_back(node);
  }
  asked_.notify_one();
}

// Newest first, as older ones are ready sooner.
int64_t ThreadedSlabMaker::Cancel(int node, int64_t most) {
  const std::lock_guard lock(mutex_);
  int64_t cancelled = 0;
  for (size_t at = nodes_.size(); at-- > 0 && cancelled < most;) {
    if (nodes_[at] != node) continue;
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(at));
    ++cancelled;
  }
  return cancelled;
}

void ThreadedSlabMaker::End(uint64_t ticket, SlabFile slab, bool scrub) {
  {
    const std::lock_guard lock(mutex_);
    to_end_.push_back({ticket, std::move(slab), scrub});
  }
  asked_.notify_one();
}

std::vector<MadeSlab> ThreadedSlabMaker::TakeMade() {
  const std::lock_guard lock(mutex_);
  uint64_t count = 0;
  // An empty counter is fine.
  if (read(ready_.get(), &count, sizeof count) < 0) count = 0;
  return std::exchange(made_, {});
}

std::vector<uint64_t> ThreadedSlabMaker::TakeEnded() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

bool ThreadedSlabMaker::MakesDrivers() const {
  const std::lock_guard lock(mutex_);
  return makes_drivers_;
}

std::optional<std::string> ThreadedSlabMaker::TakeProblem() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problem_, std::nullopt);
}

void ThreadedSlabMaker::Main() {
  std::unique_lock lock(mutex_);
  if (driver_) TryDriver(lock);
  while (!ending_) {
    if (still_mapped_.empty()) {
      asked_.wait(lock, [&] { return HasWork(); });
    } else {
      asked_.wait_for(lock, kLookAgain, [&] { return HasWork(); });
    }
    if (!nodes_.empty() && !ending_) MakeOne(lock);
    EndSome(lock);
  }
}

void ThreadedSlabMaker::TryDriver(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const DriverSlabs::Answer answer = driver_->Try(slab_bytes_);
  if (answer.outcome == DriverSlabs::Outcome::kRefused) GiveUpDriver(answer.why);
  lock.lock();
}

void ThreadedSlabMaker::GiveUpDriver(const std::string& why) {
  std::unique_ptr<DriverSlabs> given_up;  // destroyed without the lock, as that takes long
  const std::lock_guard lock(mutex_);
  given_up = std::move(driver_);
  makes_drivers_ = false;
  problem_ = why;
  eventfd_write(ready_.get(), 1);
}

// No fallback after kNoMemory: files would have no memory either.
std::optional<SlabFile> ThreadedSlabMaker::Make(int node) {
  if (driver_) {
    DriverSlabs::Answer answer = driver_->Make(slab_bytes_, node);
    if (answer.outcome != DriverSlabs::Outcome::kRefused) return std::move(answer.slab);
    GiveUpDriver(answer.why);
  }
  return MakeSlabFile(slab_bytes_, node, huge_, topology_);
}

// The driver's worker ends when there is nothing to make.
void ThreadedSlabMaker::MakeOne(std::unique_lock<std::mutex>& lock) {
  const int node = nodes_.front();
  nodes_.pop_front();
  lock.unlock();
  MadeSlab made = {node, Make(node)};
  lock.lock();
  if (nodes_.empty() && driver_) {
    lock.unlock();
    driver_->Rest();
    lock.lock();
  }
  made_.push_back(std::move(made));
  eventfd_write(ready_.get(), 1);
}

void ThreadedSlabMaker::EndSome(std::unique_lock<std::mutex>& lock) {
  std::vector<Ending> slabs = std::exchange(to_end_, {});
  lock.unlock();
  for (Ending& ending : slabs) {
    if (ending.scrub) Scrub(ending.slab);
    still_mapped_.push_back(std::move(ending));
  }
  std::vector<uint64_t> ended;
  std::erase_if(still_mapped_, [&](const Ending& ending) {
    if (!Retire(ending.slab)) return false;
    ended.push_back(ending.ticket);
    return true;
  });
  lock.lock();
  if (ended.empty()) return;
  ended_.insert(ended_.end(), ended.begin(), ended.end());
  eventfd_write(ready_.get(), 1);
}

}  // namespace spillway::agent
