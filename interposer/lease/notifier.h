// Wakes a thread of ours that sleeps in poll.
//
// Notifications before it wakes count as one. Without a file (too many are open) the thread must
// wake by itself.
#pragma once

#include "base/unique_fd.h"

namespace spillway::interposer {

class Notifier {
 public:
  Notifier();
  // For calls that wait for a larger grant: the lease thread reports to the agent at once.
  static Notifier& ForGrants();

  void Notify() const;
  void Clear() const;
  int file() const { return file_.get(); }

 private:
  base::UniqueFd file_;
};

}  // namespace spillway::interposer
