// Closes the files that clients pass to the agent, on threads of its own: a client's file can block
// its close for as long as the client likes.
//
// Invariants
//  1. Take never blocks. A blocked close delays no other until kMostThreads are blocked.
//  2. A blocked close of a socket does not outlive the agent. (That of a file system of the
//  client's
//     own may.)
#pragma once

#include <memory>

#include "base/unique_fd.h"

namespace spillway::agent {

class FileCloser {
 public:
  static constexpr int kMostThreads = 16;

  FileCloser();
  ~FileCloser();
  void Take(base::UniqueFd file);

 private:
  struct Queue;
  static void* CloseAll(void* queue);

  const std::shared_ptr<Queue> queue_;
};

}  // namespace spillway::agent
