#include "agent/loop/file_closer.h"

#include <sys/socket.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/quiet_thread.h"

namespace spillway::agent {

struct FileCloser::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<base::UniqueFd> files;
  size_t threads = 0, idle_threads = 0;
  bool is_over = false;
};

FileCloser::FileCloser() : queue_(std::make_shared<Queue>()) {}

// A thread with a blocked file goes on alone, with the queue.
FileCloser::~FileCloser() {
  const std::lock_guard lock(queue_->mutex);
  queue_->is_over = true;
  queue_->changed.notify_all();
}

// Without a thread the file waits for the next one.
void FileCloser::Take(base::UniqueFd file) {
  const std::lock_guard lock(queue_->mutex);
  queue_->files.push_back(std::move(file));
  queue_->changed.notify_one();
  if (queue_->idle_threads >= queue_->files.size() || queue_->threads >= kMostThreads) return;
  auto shared = std::make_unique<std::shared_ptr<Queue>>(queue_);
  if (!base::StartDetachedThread("spillway-close", &CloseAll, shared.get())) return;
  static_cast<void>(shared.release());
  ++queue_->threads;
}

void* FileCloser::CloseAll(void* shared) {
  const std::unique_ptr<std::shared_ptr<Queue>> owner(static_cast<std::shared_ptr<Queue>*>(shared));
  Queue& queue = **owner;
  std::unique_lock lock(queue.mutex);
  for (;;) {
    ++queue.idle_threads;
    queue.changed.wait(lock, [&queue] { return queue.is_over || !queue.files.empty(); });
    --queue.idle_threads;
    if (queue.files.empty()) return nullptr;
    base::UniqueFd file = std::move(queue.files.front());
    queue.files.pop_front();
    lock.unlock();
    const linger none{};
    setsockopt(file.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    file.Reset();
    lock.lock();
  }
}

}  // namespace spillway::agent
