// Keeps each process's budgets for the next agent, and says what an earlier agent's process is
// believed to hold.
//
// Invariants
//  1. While processes of an earlier agent return, they are believed as far as recorded, even above
//     their limits: limits change, held memory stays. Later, none is believed.
//     A recorded process that lives and has not returned by then keeps its budgets
//     (sessions/absent_processes.h).
//  2. No report takes memory from others: what is believed fits the device and the host.
#pragma once

#include "agent/node/held_record.h"
#include "agent/node/table/node_facts.h"
#include "agent/node/table/resume_period.h"
#include "agent/node/table/session_table.h"

namespace spillway::agent {

class BudgetRecord {
 public:
  BudgetRecord(const NodeFacts* facts, const SessionTable* table, const Arbiter* arbiter,
               const ResumePeriod* resume, HeldRecord* record)
      : facts_(*facts), table_(*table), arbiter_(*arbiter), resume_(*resume), record_(record) {}

  Held BelievedOf(const Session& session, DeviceId device, const protocol::Register& asked) const;
  void Note(const Session& session, DeviceId device);
  // A decision about it, before it is sent.
  void Note(const TenantProcess& process);
  std::map<HolderOnDevice, Held> NotReturned() const;
  void EndReturn();

 private:
  HolderOnDevice HolderOf(const Session& session, DeviceId device) const;

  const NodeFacts& facts_;
  const SessionTable& table_;
  const Arbiter& arbiter_;
  const ResumePeriod& resume_;
  HeldRecord* const record_;
};

}  // namespace spillway::agent
