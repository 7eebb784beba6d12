#include "agent/device/limit_thread.h"

#include <sys/eventfd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "agent/device/limit_keeper.h"
#include "agent/device/nvml.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace spillway::agent {
namespace {

class NvmlLimits final : public LimitDriver {
 public:
  nvml::Result Get(const LimitPlace& place, NativeLimits& limits) override {
    return Opened().ReadLimits(place.uuid, place.group, limits);
  }
  nvml::Result Set(const LimitPlace& place, const NativeLimits& limits) override {
    return Opened().SetLimits(place.uuid, place.group, limits);
  }

 private:
  // The driver may come up after the agent.
  const Nvml& Opened() {
    if (nvml_ && !nvml_->works()) nvml_.reset();  // before the next one: both are the same library
    if (!nvml_) nvml_.emplace();
    return *nvml_;
  }

  std::optional<Nvml> nvml_;
};

}  // namespace

struct LimitThread::Shared {
  const std::string path;
  OwnLimits before;  // constant once the thread runs
  const base::UniqueFd changed{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  mutable std::mutex mutex;
  std::condition_variable wanted_more;
  bool ends = false;                        // guarded by mutex
  bool is_new = false;                      // guarded by mutex
  WantedLimits wanted;                      // guarded by mutex
  std::shared_ptr<const LimitViews> views;  // guarded by mutex
  std::vector<std::string> notes;           // guarded by mutex

  explicit Shared(std::string record) : path(std::move(record)) {}
};

LimitThread::LimitThread(const std::string& path) : shared_(std::make_shared<Shared>(path)) {
  LimitViews views;
  base::Result<OwnLimits> before = path.empty() ? OwnLimits{} : LoadLimits(path);
  if (!before) shared_->notes.push_back(before.text());
  shared_->before = std::move(before).value_or({});
  for (const auto& [place, own] : shared_->before) views[place] = {};
  shared_->views = std::make_shared<const LimitViews>(std::move(views));
}

LimitThread::~LimitThread() {
  const std::lock_guard lock(shared_->mutex);
  shared_->ends = true;
  shared_->wanted_more.notify_all();
}

void LimitThread::Begin() {
  runs_ = true;
  std::thread([shared = shared_] { Run(*shared); }).detach();
}

void LimitThread::Want(const WantedLimits& limits) {
  if (!runs_ && limits.empty() && shared_->before.empty()) return;
  if (!runs_) Begin();
  const std::lock_guard lock(shared_->mutex);
  if (shared_->wanted == limits && shared_->is_new) return;
  shared_->wanted = limits;
  shared_->is_new = true;
  shared_->wanted_more.notify_all();
}

std::shared_ptr<const LimitViews> LimitThread::Views() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->views;
}

int LimitThread::file() const { return shared_->changed.get(); }

void LimitThread::Drain() const {
  eventfd_t count = 0;
  eventfd_read(shared_->changed.get(), &count);
}

std::vector<std::string> LimitThread::TakeNotes() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->notes, {});
}

void LimitThread::Run(Shared& shared) {
  NvmlLimits driver;
  const auto save = [&](const OwnLimits& own) {
    return shared.path.empty() ? base::Ok() : base::ReplaceFile(shared.path, EncodeLimits(own));
  };
  const auto publish = [&](const LimitViews& views) {
    const std::lock_guard lock(shared.mutex);
    if (*shared.views == views) return;
    shared.views = std::make_shared<const LimitViews>(views);
    eventfd_write(shared.changed.get(), 1);
  };
  LimitKeeper keeper({&driver, save, publish}, shared.before);
  std::unique_lock lock(shared.mutex);
  while (!shared.ends) {
    shared.wanted_more.wait(lock, [&] { return shared.ends || shared.is_new; });
    if (shared.ends) return;
    shared.is_new = false;
    const WantedLimits wanted = shared.wanted;
    lock.unlock();
    keeper.Apply(wanted, static_cast<int64_t>(base::MonotonicNs()));
    lock.lock();
    for (std::string& note : keeper.TakeNotes()) shared.notes.push_back(std::move(note));
  }
}

}  // namespace spillway::agent
