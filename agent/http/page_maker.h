// Makes slow pages on its own thread: NVML can hang, and a page of many jobs is long. Owned by the
// HTTP server, whose thread calls Want and Take. file() becomes readable when a page is ready.
//
// Invariants
//  1. One page serves all clients that wait for its path. Each path waits once, in order of
//  arrival.
//  2. The destructor waits for the page that the thread is making.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/http/http_answer.h"
#include "base/unique_fd.h"

namespace spillway::agent {

class PageMaker {
 public:
  struct Made {
    std::string path;
    HttpAnswer answer;
  };

  explicit PageMaker(std::function<HttpAnswer(const std::string& path)> make);
  ~PageMaker();

  void Want(const std::string& path);
  // What was made since the last call.
  std::vector<Made> Take();
  int file() const { return made_notifier_.get(); }

 private:
  void Run();

  const std::function<HttpAnswer(const std::string&)> make_;
  const base::UniqueFd made_notifier_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<std::string> wanted_;  // guarded by mutex_
  std::vector<Made> made_;          // guarded by mutex_
  bool ends_ = false;               // guarded by mutex_
  std::thread thread_;
};

}  // namespace spillway::agent
