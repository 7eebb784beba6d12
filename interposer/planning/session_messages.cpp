#include "interposer/planning/session_messages.h"

#include <inttypes.h>
#include <stdio.h>

namespace spillway::interposer::session_messages {

void SayAdmitted() {
  fprintf(stderr,
          "spillway: the job is admitted, and begins when others have given back memory for it\n");
}

void SayBudget(const std::string& address, std::int64_t bytes, int device) {
  fprintf(stderr,
          "spillway: the budget is that of the agent at %s: %" PRId64
          " MiB of device %d now, and changes\n",
          address.c_str(), bytes >> 20, device);
}

void SayGivenUp(const std::string& address, bool is_required) {
  fprintf(stderr,
          "spillway: the agent at %s is not there or does not take this job; %s until it does\n",
          address.c_str(),
          is_required ? "it is required, and the job gets no device memory"
                      : "the budget of `spillway run` stands");
}

void SayAbsent(const std::string& address, Absence how, bool is_required) {
  const bool is_gone = how == Absence::kGone;
  fprintf(stderr, "spillway: the agent at %s, which the job waits for, %s; %s until it %s\n",
          address.c_str(), is_gone ? "is gone" : "does not answer",
          is_required ? "it is required, and the job waits" : "the budget of `spillway run` stands",
          is_gone ? "comes back" : "does");
}

void SayNotAdmitted(bool is_queued, const std::string& reason) {
  fprintf(stderr,
          is_queued ? "spillway: the job waits in the agent's queue, to begin "
                      "when there is memory for it: %s\n"
                    : "spillway: the agent gives the job no memory: %s\n",
          reason.c_str());
}

void SayTurnsEnded(const std::string& address) {
  fprintf(stderr,
          "spillway: the agent at %s, which gives the job its turns, is gone or does not answer; "
          "the job goes on with its last budget\n",
          address.c_str());
}

}  // namespace spillway::interposer::session_messages
