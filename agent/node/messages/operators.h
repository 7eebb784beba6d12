// Answers operators and managers of jobs such as Slurm: questions about the node, and changes of
// it.
//
// Invariants
//  1. Each request has one answer. Requests that change something, and refused ones, are logged.
//  2. Only root, the agent's user and the configured operators may change something; through the
//     jobs' socket, or an allocation's, nobody. There the answer to a question tells of the asking
//     process's own job.
//  3. An operator that leaves kMostUnread answers unread gets no more: their files would take the
//     agent's memory, and the user's part of all files in flight.
//  4. A change that the next agent will not know is done, and the answer says so.
#pragma once

#include <optional>

#include "agent/node/holdings/job_terms.h"
#include "agent/node/messages/node_reporter.h"
#include "agent/node/services.h"
#include "agent/node/table/users.h"

namespace spillway::agent {

class Operators {
 public:
  struct Parts {
    const NodeFacts* facts;
    SessionTable* table;
    Users* users;
    JobTerms* terms;
    ExpectedJobs* expected;
    Allocations* allocations;
    const NodeReporter* reporter;
    NodeServices* services;
    NodeCounters* counters;
  };
  static constexpr size_t kMostUnread = 16;

  explicit Operators(const Parts& parts) : parts_(parts) {}

  std::optional<Refusal> Take(Session& session, const protocol::Message& message, int64_t now_ns);

 private:
  bool MayChange(const Session& session) const;
  std::string WhyNotToChange(const Session& session) const;
  NodeReport ReportFor(const Session& session, int64_t now_ns) const;
  protocol::Outcome Answer(const Session& session, const protocol::Message& message,
                           int64_t now_ns);
  protocol::Outcome AnswerQuestion(const Session& session, const protocol::Ask& ask,
                                   int64_t now_ns);
  // `answer`: another one than Done, where the request has one.
  protocol::Done DoIfAllowed(const Session& session, const protocol::Message& message,
                             std::optional<protocol::Message>* answer);
  protocol::Done Do(const protocol::SetBudget& wanted);
  protocol::Done Do(const protocol::SetWorkspace& wanted);
  protocol::Done Do(const protocol::Control& control);
  protocol::Done Do(const protocol::ExpectJob& wanted);
  protocol::Done Do(const protocol::ForgetJob& wanted, std::optional<protocol::Message>* answer);
  protocol::Done Do(const protocol::OpenListener& wanted, std::optional<protocol::Message>* answer);
  protocol::Done Do(const protocol::CloseListener& wanted);
  bool CloseAllocation(const std::string& name);
  void RefreshTermsOf(const std::string& key);
  std::string WhyNotSaved();

  const Parts parts_;
};

}  // namespace spillway::agent
