#include "agent/http/page_maker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace spillway::agent {

PageMaker::PageMaker(std::function<std::string(MadePage)> make)
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

void PageMaker::Want(MadePage page) {
  {
    const std::lock_guard lock(mutex_);
    wanted_[static_cast<size_t>(page)] = true;
  }
  asked_.notify_one();
}

PageText PageMaker::Take(MadePage page) {
  const std::lock_guard lock(mutex_);
  return std::exchange(made_[static_cast<size_t>(page)], nullptr);
}

void PageMaker::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto is_wanted = [this] { return std::find(wanted_.begin(), wanted_.end(), true); };
    asked_.wait(lock, [&] { return ends_ || is_wanted() != wanted_.end(); });
    if (ends_) return;
    const auto index = static_cast<size_t>(is_wanted() - wanted_.begin());
    wanted_[index] = false;
    lock.unlock();
    auto text = std::make_shared<const std::string>(make_(static_cast<MadePage>(index)));
    lock.lock();
    made_[index] = std::move(text);
    eventfd_write(made_notifier_.get(), 1);
  }
}

}  // namespace spillway::agent
