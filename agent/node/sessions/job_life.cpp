#include "agent/node/sessions/job_life.h"

#include "agent/node/table/job_report.h"

namespace spillway::agent {

Job& JobLife::JobFor(const JobIdentity& identity, const User& user, int64_t now_ns) {
  if (Job* const known = parts_.table->FindJobByKey(identity.key)) return *known;
  Job& job = parts_.table->AddJob(identity.key);
  job.name = identity.name;
  job.command =
      protocol::Text<64>(identity.command).view();  // cuts and cleans a name that the tenant chose
  job.source = identity.source;
  job.source_id = identity.id;
  job.uid = user.uid;
  job.since_ns = now_ns;
  job.owner = parts_.owners->AddJob(job);
  job.set_by_operator = parts_.terms->TakeRestored(job.key);
  job.is_logged = parts_.users->TakeLogLine(user, now_ns);
  ++parts_.counters->jobs_started;
  parts_.services->JobStarted(ReportOf(job, *parts_.table, *parts_.facts, now_ns));
  return job;
}

void JobLife::EndIfEmpty(JobId id, int64_t now_ns) {
  const Job* const job = parts_.table->FindJob(id);
  if (job == nullptr || !job->sessions.empty()) return;
  ++parts_.counters->jobs_ended;
  parts_.services->JobEnded(ReportOf(*job, *parts_.table, *parts_.facts, now_ns));
  parts_.terms->NoteEnd(*job);
  parts_.expected->NoteEnd(*job);
  parts_.slabs->EndJob(*job);
  parts_.owners->TakeJob(*job);
  parts_.table->RemoveJob(id);
}

}  // namespace spillway::agent
