#include "interposer/planning/session_messages.h"

#include <stdio.h>
#include <unistd.h>

#include "base/terminal.h"
#include "base/wrapped_lines.h"

namespace spillway::interposer::session_messages {
namespace {

// A terminal's lines are wrapped; a log keeps each message on one line, for searches.
void Say(const std::string& message) {
  const std::string text = base::WrappedLines(
      "spillway: " + message, base::TerminalColumns(STDERR_FILENO), "  ", base::LongWords::kKeep);
  fputs(text.c_str(), stderr);
}

}  // namespace

void SayAdmitted() {
  Say("the job is admitted, and begins when others have given back memory for it");
}

void SayBudget(const std::string& address, std::int64_t bytes, int device) {
  Say("the budget is that of the agent at " + address + ": " + std::to_string(bytes >> 20) +
      " MiB of device " + std::to_string(device) + " now, and changes");
}

void SayGivenUp(const std::string& address, bool is_required) {
  Say("the agent at " + address + " is not there or does not take this job; " +
      (is_required ? "it is required, and the job gets no device memory"
                   : "the budget of `spillway run` stands") +
      " until it does");
}

void SayAbsent(const std::string& address, Absence how, bool is_required) {
  const bool is_gone = how == Absence::kGone;
  Say("the agent at " + address + ", which the job waits for, " +
      (is_gone ? "is gone" : "does not answer") + "; " +
      (is_required ? "it is required, and the job waits" : "the budget of `spillway run` stands") +
      " until it " + (is_gone ? "comes back" : "does"));
}

void SayNotAdmitted(bool is_queued, const std::string& reason) {
  Say((is_queued ? "the job waits in the agent's queue, to begin when there is memory for it: "
                 : "the agent gives the job no memory: ") +
      reason);
}

void SayTurnsEnded(const std::string& address) {
  Say("the agent at " + address +
      ", which gives the job its turns, is gone or does not answer; the job goes on with its last "
      "budget");
}

}  // namespace spillway::interposer::session_messages
