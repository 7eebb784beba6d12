#include "agent/pool/slab_maker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace spillway::agent {

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

std::vector<MadeSlab> ThreadedSlabMaker::TakeMade() {
  const std::lock_guard lock(mutex_);
  uint64_t count = 0;
  // Nothing to read is as good.
  if (read(ready_.get(), &count, sizeof count) < 0) count = 0;
  return std::exchange(made_, {});
}

void ThreadedSlabMaker::Main() {
  std::unique_lock lock(mutex_);
  while (true) {
    asked_.wait(lock, [&] { return ending_ || !nodes_.empty(); });
    if (ending_) return;
    const int node = nodes_.front();
    nodes_.pop_front();
    lock.unlock();
    MadeSlab made = {node, MakeSlabFile(slab_bytes_, node, huge_, topology_)};
    lock.lock();
    made_.push_back(std::move(made));
    eventfd_write(ready_.get(), 1);
  }
}

}  // namespace spillway::agent
