// Places at the devices' links for sessions' processes. Without Shares there are none.
#pragma once

#include "agent/node/table/session.h"

namespace spillway::agent {

class SessionLinks {
 public:
  explicit SessionLinks(Shares* shares) : shares_(shares) {}

  // A grant was sent: its share of the link takes effect. A place that could not be sent is given
  // back; the next grant tries again.
  void NoteGrant(const Session& session, uint32_t number, Registration& registration,
                 int32_t link_permille);
  void Leave(const Registration& registration);
  void Settle(int64_t now_ns);

 private:
  Shares* const shares_;
  int64_t next_check_ns_ = 0;
};

}  // namespace spillway::agent
