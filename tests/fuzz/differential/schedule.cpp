#include "tests/fuzz/differential/schedule.h"

extern "C" void spillway_schedule_point();
void spillway_schedule_point() { spillway::fuzz::Schedule::Point(); }

namespace spillway::fuzz {

Schedule::Schedule(std::uint64_t seed, int threads)
    : random_(seed),
      one_in_(1u << random_.Below(6)),
      running_(static_cast<std::size_t>(threads)),
      awaited_(threads) {
  current_ = this;
}

Schedule::~Schedule() { current_ = nullptr; }

Schedule::Turn::Turn(int thread) {
  if (IsOn()) current_->Enter(thread);
}

Schedule::Turn::~Turn() {
  if (IsOn()) current_->Leave(mine_);
}

void Schedule::Point() {
  if (mine_ != kNobody) current_->Step(mine_);
}

void Schedule::Enter(int thread) {
  std::unique_lock lock(mutex_);
  mine_ = thread;
  running_[static_cast<std::size_t>(thread)] = true;
  if (--awaited_ == 0) turn_ = Chosen();
  changed_.notify_all();
  changed_.wait(lock, [&] { return turn_ == thread; });
}

void Schedule::Leave(int thread) {
  const std::lock_guard lock(mutex_);
  running_[static_cast<std::size_t>(thread)] = false;
  mine_ = kNobody;
  turn_ = Chosen();
  changed_.notify_all();
}

void Schedule::Step(int thread) {
  std::unique_lock lock(mutex_);
  if (random_.Below(one_in_) != 0) return;
  turn_ = Chosen();
  if (turn_ == thread) return;
  changed_.notify_all();
  changed_.wait(lock, [&] { return turn_ == thread; });
}

int Schedule::Chosen() {
  std::vector<int> running;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]) running.push_back(static_cast<int>(i));
  }
  if (running.empty()) return kNobody;
  return running[random_.Below(running.size())];
}

}  // namespace spillway::fuzz
