#include "agent/http/page_maker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace spillway::agent {

PageMaker::PageMaker(std::function<HttpAnswer(const std::string& path)> make)
    : make_(std::move(make)),
      made_notifier_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

PageMaker::~PageMaker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

void PageMaker::Want(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    if (std::find(wanted_.begin(), wanted_.end(), path) == wanted_.end()) wanted_.push_back(path);
  }
  asked_.notify_one();
}

std::vector<PageMaker::Made> PageMaker::Take() {
  eventfd_t ignored = 0;
  eventfd_read(made_notifier_.get(), &ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(made_, {});
}

void PageMaker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, [this] { return ends_ || !wanted_.empty(); });
    if (ends_) return;
    const std::string path = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    HttpAnswer answer = make_(path);
    lock.lock();
    made_.push_back({path, std::move(answer)});
    eventfd_write(made_notifier_.get(), 1);
  }
}

}  // namespace spillway::agent
