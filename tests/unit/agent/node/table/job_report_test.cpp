#include "agent/node/table/job_report.h"

#include "tests/unit/agent/node/part_fixture.h"

namespace spillway::agent {
namespace {

class JobReportTest : public PartTest {
 protected:
  JobReportTest() { facts_.devices = {{{9}, "GPU-1", "Simulated", 100}}; }
  TenancyReport Only() {
    return ReportOf(*table_.FindJobByName("job"), table_, facts_, kSecond).tenancies.at(0);
  }

  NodeFacts facts_;
};

TEST_F(JobReportTest, SumsItsProcesses) {
  Register(NewJobSession("job", 7), 0).usage = {.resident_bytes = 10, .stall_ns = 1};
  Register(NewJobSession("job", 8), 0).usage = {.resident_bytes = 20, .stall_ns = 2};

  EXPECT_EQ(Only().uuid, "GPU-1");
  EXPECT_EQ(Only().resident_bytes, 30);
  EXPECT_EQ(Only().stall_ns, 3);
}

TEST_F(JobReportTest, WhatAnEndedProcessDidCountsOnNotWhatItHeld) {
  Session& session = NewJobSession("job", 7);
  Register(session, 0).usage = {.resident_bytes = 10, .stall_ns = 1};

  AddUsage(*session.Find(0), JobOf("job").finished[kDevice]);
  table_.LeaveJob(session);

  EXPECT_EQ(Only().resident_bytes, 0);
  EXPECT_EQ(Only().stall_ns, 1);
}

TEST_F(JobReportTest, AnOlderClientsFootprintIsWhatItWants) {
  Session& session = NewJobSession("job", 7);
  Registration& registration = Register(session, 0);
  registration.usage = {.wanted_bytes = 30, .resident_bytes = 10};
  EXPECT_EQ(Only().footprint_bytes, 10) << "not reported yet";
  registration.allocated_bytes = 20;
  EXPECT_EQ(Only().footprint_bytes, 20);

  session.version = 5;

  EXPECT_EQ(Only().footprint_bytes, 30);
}

TEST_F(JobReportTest, CountsProcessesWithoutAConnectionByPart) {
  NewJobSession("job", 7).part = "step-0";
  Session& lost = NewJobSession("job", 8);
  lost.part = "step-1";
  lost.state = SessionState::kDetached;

  const JobReport report = ReportOf(JobOf("job"), table_, facts_, kSecond);

  EXPECT_EQ(report.processes.all, 2U);
  EXPECT_EQ(report.processes.detached, 1U);
  EXPECT_EQ(report.parts.at("step-0").detached, 0U);
  EXPECT_EQ(report.parts.at("step-1").detached, 1U);
}

}  // namespace
}  // namespace spillway::agent
