// The users of the node's processes: how many sessions each has, and how often it may connect, ask
// and cause log lines.
//
// Note [Lines of users]
// Limits log lines that any user can cause: jobs that begin and end, refused requests. Lines left
// out are counted and reported.
//
// Invariants
//  1. A user is known at least as long as it has sessions.
#pragma once

#include <sys/types.h>

#include <map>

#include "agent/node/rate.h"
#include "agent/node/services.h"

namespace spillway::agent {

class Users {
 public:
  explicit Users(NodeServices* services) : services_(services) {}

  // False: too fast.
  bool TakeConnection(uid_t uid, int64_t now_ns, int64_t per_second);
  bool TakeQuestion(uid_t uid, int64_t now_ns, int64_t per_second);
  bool TakeLogLine(uid_t uid, int64_t now_ns);

  void AddSession(uid_t uid) { ++users_[uid].sessions; }
  // A user without sessions is forgotten, unless it connected just now.
  void RemoveSession(uid_t uid, int64_t now_ns);
  int64_t SessionsOf(uid_t uid) const;

 private:
  struct User {
    Rate connections;
    Rate questions;  // of all its operator sessions
    Rate lines;
    int64_t lines_left_out = 0;
    int64_t sessions = 0;
  };

  NodeServices* const services_;
  std::map<uid_t, User> users_;
};

}  // namespace spillway::agent
