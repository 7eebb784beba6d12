// The users of the node's processes: how many sessions each has, and how often it may connect, ask
// and cause log lines.
//
// Note [Lines of users]
// Limits log lines that any user can cause: jobs that begin and end, refused requests. Lines left
// out are counted and reported.
//
// Note [Users of containers]
// In containers many are root. Without user namespaces they are the host's root to the kernel. So
// what comes by the jobs' socket counts apart: no container takes an operator's turn, or that of
// the driver that prepares pods. All processes that come by one allocation's socket are one user:
// its root can become any, and takes no other allocation's turn.
//
// Invariants
//  1. A user is known at least as long as it has sessions.
#pragma once

#include <sys/types.h>

#include <compare>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "agent/node/rate.h"
#include "agent/node/services.h"
#include "agent/node/table/session.h"

namespace spillway::agent {

struct User {
  User(uid_t id, Entrance by = Entrance::kAll, std::string of = "")
      : uid(id), entrance(by), allocation(std::move(of)) {}
  uid_t uid;
  Entrance entrance;
  std::string allocation;

  auto Key() const {
    return std::tuple(entrance, std::string_view(allocation), allocation.empty() ? uid : 0);
  }
  bool operator==(const User& other) const { return Key() == other.Key(); }
  auto operator<=>(const User& other) const { return Key() <=> other.Key(); }
};
inline User UserOf(const Session& session) {
  return {session.uid(), session.entrance, session.allocation};
}

class Users {
 public:
  explicit Users(NodeServices* services) : services_(services) {}

  // False: too fast.
  bool TakeConnection(const User& user, int64_t now_ns, int64_t per_second);
  bool TakeQuestion(const User& user, int64_t now_ns, int64_t per_second);
  bool TakeLogLine(const User& user, int64_t now_ns);

  void AddSession(const User& user) { ++users_[user].sessions; }
  // A user without sessions is forgotten, unless it connected just now.
  void RemoveSession(const User& user, int64_t now_ns);
  int64_t SessionsOf(const User& user) const;

 private:
  struct Use {
    Rate connections;
    Rate questions;  // of all its operator sessions
    Rate lines;
    int64_t lines_left_out = 0;
    int64_t sessions = 0;
  };

  NodeServices* const services_;
  std::map<User, Use> users_;
};

}  // namespace spillway::agent
