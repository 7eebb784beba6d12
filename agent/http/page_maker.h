// Makes the slow pages on its own thread: NVML can hang, and a page of many jobs is long. Owned by
// the HTTP server, whose thread calls Want and Take. file() becomes readable when a page is ready.
//
// Invariants
//  1. One page serves all clients that wait for it.
//  2. The destructor waits for the page that the thread is making.
#pragma once

#include <array>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace spillway::agent {

enum class MadePage : uint8_t { kMetrics, kStatus };
inline constexpr size_t kMadePages = 2;

using PageText = std::shared_ptr<const std::string>;

class PageMaker {
 public:
  explicit PageMaker(std::function<std::string(MadePage)> make);
  ~PageMaker();

  void Want(MadePage page);
  // Null: none was made since the last call.
  PageText Take(MadePage page);
  int file() const { return made_notifier_.get(); }

 private:
  void Run();

  const std::function<std::string(MadePage)> make_;
  const base::UniqueFd made_notifier_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::array<bool, kMadePages> wanted_{};    // guarded by mutex_
  std::array<PageText, kMadePages> made_{};  // guarded by mutex_
  bool ends_ = false;                        // guarded by mutex_
  std::thread thread_;
};

}  // namespace spillway::agent
