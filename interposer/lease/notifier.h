// Wakes a thread of ours that sleeps in poll.
//
// Any thread rings; one thread waits on the file. Rung several times before it looks is rung once.
// Where there is no file (too many are open) nobody is woken, and whoever sleeps must wake now and
// then by itself. Nobody waits in here.
#pragma once

#include "base/unique_fd.h"

namespace spillway::interposer {

class Notifier {
 public:
  Notifier();
  // Rung by a call that waits for a larger grant: the lease's thread is to tell the agent at once.
  static Notifier& ForGrants();

  void Notify() const;
  // What was rung before is heard.
  void Clear() const;
  int file() const { return file_.get(); }

 private:
  base::UniqueFd file_;
};

}  // namespace spillway::interposer
