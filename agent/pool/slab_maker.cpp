#include "agent/pool/slab_maker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <utility>

namespace spillway::agent {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds(200);

}  // namespace

ThreadedSlabMaker::ThreadedSlabMaker(int64_t slab_bytes, HugePages huge, const Topology* topology)
    : slab_bytes_(slab_bytes),
      huge_(huge),
      topology_(topology),
      ready_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Main(); }) {}

ThreadedSlabMaker::~ThreadedSlabMaker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
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
  // Nothing to read is as good.
  if (read(ready_.get(), &count, sizeof count) < 0) count = 0;
  return std::exchange(made_, {});
}

std::vector<uint64_t> ThreadedSlabMaker::TakeEnded() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

void ThreadedSlabMaker::Main() {
  std::unique_lock lock(mutex_);
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

void ThreadedSlabMaker::MakeOne(std::unique_lock<std::mutex>& lock) {
  const int node = nodes_.front();
  nodes_.pop_front();
  lock.unlock();
  MadeSlab made = {node, MakeSlabFile(slab_bytes_, node, huge_, topology_)};
  lock.lock();
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
