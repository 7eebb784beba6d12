#include "agent/report/pages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "agent/config/device_uuid.h"
#include "agent/device/device_list.h"
#include "agent/http/metrics.h"
#include "agent/loop/log.h"

namespace spillway::agent {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

NodeReport Report() {
  NodeReport report;
  report.devices = {
      {0, "GPU-1", "NVIDIA H200", 140 * kGiB, 12 * kGiB, 8 * kGiB, "0000:81:00.0", 1}};
  JobReport job;
  job.name = "slurm-1201";
  job.source = JobSource::kSlurm;
  job.source_id = "1201";
  job.command = "a \"job\"\xff";
  job.uid = 1000;
  job.age_ns = 90'000'000'000;
  job.processes.all = 2;
  job.parts = {{"0", {2, 0}}};
  TenancyReport tenancy;
  tenancy.uuid = "GPU-1";
  tenancy.view.state = TenancyState::kAdmitted;
  tenancy.view.granted_bytes = 12 * kGiB;
  tenancy.view.wanted_bytes = 157 * kGiB;  // still a claim: the job may grow
  tenancy.footprint_bytes = 20 * kGiB;
  tenancy.resident_bytes = 8 * kGiB;
  tenancy.to_host_bytes = 5;
  tenancy.stall_ns = 1'500'000'000;
  tenancy.parts.ordinary_bytes = 3 * kGiB;
  tenancy.parts.planned_to_host_bytes = 5;
  tenancy.parts.stall_ns[1] = 1'500'000'000;
  job.tenancies = {tenancy};
  report.jobs = {job};
  return report;
}

protocol::Ask Asking(protocol::Question question, protocol::Form form, uint16_t columns = 0) {
  protocol::Ask ask;
  ask.question = question;
  ask.form = form;
  ask.columns = columns;
  ask.job = "slurm-1201";
  return ask;
}

TEST(PagesTest, StatusShowsDevicesAndJobs) {
  const std::string page =
      PageOf(Asking(protocol::Question::kStatus, protocol::Form::kText), Report());

  EXPECT_NE(page.find("0   NVIDIA H200               140.0 GiB   12.0 GiB    8.0 GiB       1"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("slurm-1201       0   reactive     12.0 GiB  20.0 GiB   8.0 GiB   3.0 GiB"),
            std::string::npos)
      << page;
}

// Regression: `container-` and 12 digits were cut to 16 letters, which named no job.
TEST(PagesTest, NamesOfContainersAreWhole) {
  NodeReport report = Report();
  report.jobs.push_back(report.jobs[0]);
  report.jobs[1].name = "container-012345678901";
  report.jobs.push_back(report.jobs[1]);
  report.jobs[2].tenancies.clear();
  for (const auto question : {protocol::Question::kStatus, protocol::Question::kJobs}) {
    for (const uint16_t columns : {0, 79, 80, 120}) {
      const std::string page = PageOf(Asking(question, protocol::Form::kText, columns), report);
      EXPECT_NE(page.find("\nslurm-1201             0   reactive     12.0 GiB"), std::string::npos)
          << page;
      EXPECT_NE(page.find("\ncontainer-012345678901 0   reactive     12.0 GiB"), std::string::npos)
          << page;
      EXPECT_NE(page.find("\ncontainer-012345678901 -   no device"), std::string::npos) << page;
      EXPECT_NE(page.find("8.0 GiB   3.0 GiB"), std::string::npos) << page;
    }
  }
  const auto narrow = PageOf(Asking(protocol::Question::kJobs, protocol::Form::kText, 72), report);
  EXPECT_NE(narrow.find("\n~er-012345678901 0"), std::string::npos) << narrow;
}

NodeReport ReportOfUsers() {
  NodeReport report = Report();
  OwnerReport& user = report.owners.emplace_back();
  user.name = "user-1001";
  user.account = "physics";
  user.terms.jobs = 4;
  user.jobs = 2;
  user.waiting_jobs = 1;
  user.host_granted_bytes = 5;
  user.devices = {{0, "GPU-1", 12 * kGiB, 20 * kGiB, 8 * kGiB, 35 * kGiB}};
  return report;
}

// Regression: users were shown in the JSON document only.
TEST(PagesTest, StatusAndMetricsShowUsers) {
  const NodeReport report = ReportOfUsers();
  const std::string page =
      PageOf(Asking(protocol::Question::kStatus, protocol::Form::kText, 80), report);
  const std::string json =
      PageOf(Asking(protocol::Question::kStatus, protocol::Form::kJson), report);
  const std::string metrics = MetricsOf(report);

  EXPECT_NE(
      page.find("user-1001            2 of 4       1 0    12.0 GiB    8.0 GiB  35.0 GiB physics"),
      std::string::npos)
      << page;
  const auto use = nlohmann::json::parse(json)["users"][0]["devices"][0];
  EXPECT_EQ(use["guaranteed_bytes"], 8 * kGiB);
  EXPECT_EQ(use["limit_bytes"], 35 * kGiB);
  const std::string labels = "owner=\"user-1001\",account=\"physics\"";
  for (const std::string& line :
       {"spillway_owner_jobs{" + labels + ",state=\"waiting\"} 1",
        "spillway_owner_jobs_limit{" + labels + "} 4",
        "spillway_owner_memory_budget_bytes{" + labels + ",gpu=\"0\",uuid=\"GPU-1\"} 12884901888",
        "spillway_owner_memory_limit_bytes{" + labels + ",gpu=\"0\",uuid=\"GPU-1\"} 37580963840",
        "spillway_owner_memory_guaranteed_bytes{" + labels +
            ",gpu=\"0\",uuid=\"GPU-1\"} 8589934592",
        "spillway_owner_host_memory_budget_bytes{" + labels + "} 5"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << "\n" << metrics;
}

// Regression: the sum of job reports overflowed.
TEST(PagesTest, SumsOfJobReportsSaturate) {
  NodeReport report = Report();
  report.jobs[0].tenancies[0].host_bytes = INT64_MAX;
  report.jobs[0].tenancies[0].parts.ordinary_bytes = INT64_MAX;
  report.jobs[0].tenancies[0].to_host_bytes = INT64_MAX;
  report.jobs[0].tenancies.push_back(report.jobs[0].tenancies[0]);

  const std::string page =
      PageOf(Asking(protocol::Question::kStatus, protocol::Form::kText), report);
  EXPECT_EQ(page.find(" -"), std::string::npos) << page;
  EXPECT_EQ(MetricsOf(report).find("spillway_host_memory_ordinary_bytes -"), std::string::npos);
  EXPECT_EQ(LogText(EndOf(report.jobs[0])).find("to_host_bytes=-"), std::string::npos);
}

TEST(PagesTest, OrdinaryMemoryIsShown) {
  const auto page = [](protocol::Question question, protocol::Form form) {
    return PageOf(Asking(question, form), Report());
  };

  EXPECT_NE(page(protocol::Question::kStatus, protocol::Form::kText)
                .find("3.0 GiB more in ordinary memory"),
            std::string::npos);
  EXPECT_NE(page(protocol::Question::kJob, protocol::Form::kText)
                .find("0 B of 0 B pinned, 3.0 GiB ordinary\n"),
            std::string::npos);
  const auto status =
      nlohmann::json::parse(page(protocol::Question::kStatus, protocol::Form::kJson));
  EXPECT_EQ(status.at("host").at("ordinary_bytes"), 3 * kGiB);
  EXPECT_EQ(status.at("jobs").at(0).at("devices").at(0).at("ordinary_bytes"), 3 * kGiB);
  const auto job = nlohmann::json::parse(page(protocol::Question::kJob, protocol::Form::kJson));
  EXPECT_EQ(job.at("devices").at(0).at("parts").at("stall_ns").at("late_prefetch"), 1'500'000'000);
}

TEST(PagesTest, TablesFitTheTerminalsColumns) {
  for (protocol::Question question : {protocol::Question::kStatus, protocol::Question::kJobs}) {
    std::istringstream page(PageOf(Asking(question, protocol::Form::kText, 60), Report()));
    for (std::string line; std::getline(page, line);) EXPECT_LE(line.size(), 60u) << line;
  }
}

// These lines are no table: the terminal wraps them.
TEST(PagesTest, AJobsLinesAreNotCut) {
  const std::string page =
      PageOf(Asking(protocol::Question::kJob, protocol::Form::kText, 60), Report());

  EXPECT_NE(page.find("weight 1, priority 0)"), page.npos) << page;
}

TEST(PagesTest, JsonFollowsItsSchemaAndEscapesAnyCommand) {
  for (protocol::Question question :
       {protocol::Question::kStatus, protocol::Question::kJobs, protocol::Question::kJob}) {
    const auto json =
        nlohmann::json::parse(PageOf(Asking(question, protocol::Form::kJson), Report()));
    EXPECT_EQ(json.at("schema"), 1);
  }
  const auto job = nlohmann::json::parse(
      PageOf(Asking(protocol::Question::kJob, protocol::Form::kJson), Report()));
  EXPECT_EQ(job.at("job"), "slurm-1201");
  EXPECT_EQ(job.at("devices").at(0).at("budget_bytes"), 12 * kGiB);
}

// Scripts read the former name of `budgeted_bytes`.
TEST(PagesTest, BudgetedMemoryKeepsItsFormerNameInJson) {
  const auto status = nlohmann::json::parse(
      PageOf(Asking(protocol::Question::kStatus, protocol::Form::kJson), Report()));
  EXPECT_EQ(status.at("devices").at(0).at("budgeted_bytes"), 12 * kGiB);
  for (const auto& holder :
       {status.at("host"), status.at("devices").at(0), status.at("jobs").at(0).at("devices").at(0)})
    EXPECT_EQ(holder.at("promised_bytes"), holder.at("budgeted_bytes"));
}

TEST(MetricsTest, SeriesBearTheirJobsLabels) {
  const std::string metrics = MetricsOf(Report());

  for (const char* line : {
           "spillway_gpu_memory_budgeted_bytes{gpu=\"0\",uuid=\"GPU-1\"} 12884901888",
           "spillway_job_memory_budget_bytes{job_id=\"slurm-1201\",gpu=\"0\",uuid=\"GPU-1\",hpc_"
           "job=\"1201\"} "
           "12884901888",
           "spillway_job_stall_seconds_total{job_id=\"slurm-1201\",gpu=\"0\",uuid=\"GPU-1\",hpc_"
           "job=\"1201\","
           "cause=\"late_prefetch\"} 1.5",
           "spillway_job_transfer_bytes_total{job_id=\"slurm-1201\",gpu=\"0\",uuid=\"GPU-1\",hpc_"
           "job=\"1201\","
           "direction=\"to_host\",cause=\"planned\"} 5",
           "spillway_job_memory_ordinary_bytes{job_id=\"slurm-1201\",gpu=\"0\",uuid=\"GPU-1\",hpc_"
           "job="
           "\"1201\"} "
           "3221225472",
           "spillway_host_memory_ordinary_bytes 3221225472",
           "spillway_gpu_info{gpu=\"0\",uuid=\"GPU-1\",pci_bus_id=\"0000:81:00.0\",model=\"NVIDIA "
           "H200\",numa_node=\"1\"} 1",
           "spillway_job_phase{job_id=\"slurm-1201\",gpu=\"0\",uuid=\"GPU-1\",hpc_job=\"1201\","
           "phase="
           "\"reactive\"} "
           "1",
           "spillway_jobs{phase=\"reactive\"} 1",
       }) {
    EXPECT_NE(metrics.find(std::string(line) + "\n"), std::string::npos) << line << " is not in\n"
                                                                         << metrics;
  }
}

// A job of an older protocol reports bytes and stalls without their causes.
TEST(MetricsTest, SumsWithoutPartsHaveUnknownCause) {
  NodeReport report = Report();
  report.jobs[0].source = JobSource::kLocal;
  EXPECT_EQ(MetricsOf(report).find("cause=\"unknown\""), std::string::npos);
  EXPECT_EQ(MetricsOf(report).find("hpc_job"), std::string::npos);
  report.jobs[0].tenancies[0].unparted_to_device_bytes = 7;

  const std::string metrics = MetricsOf(report);

  EXPECT_NE(metrics.find("direction=\"to_device\",cause=\"unknown\"} 7\n"), std::string::npos)
      << metrics;
}

TEST(MetricsTest, StepsAndWaitsAreHistograms) {
  NodeReport report = Report();
  report.jobs[0].tenancies[0].steps = {0, 2'500'000'000, {0, 0, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0}};
  report.counters.admission_waits.Add(5'000'000'000);
  report.counters.api_requests[{"status", "done"}].Add(2'000'000);

  const std::string metrics = MetricsOf(report);

  for (const char* line :
       {"hpc_job=\"1201\",le=\"0.003\"} 0\n", "hpc_job=\"1201\",le=\"0.01\"} 3\n",
        "hpc_job=\"1201\",le=\"+Inf\"} 4\n", "spillway_admission_wait_seconds_bucket{le=\"1\"} 0\n",
        "spillway_admission_wait_seconds_bucket{le=\"10\"} 1\n",
        "spillway_admission_wait_seconds_sum 5\n",
        "spillway_api_requests_total{method=\"status\",code=\"done\"} 1\n",
        "spillway_api_request_seconds_bucket{method=\"status\",code=\"done\",le=\"0.003\"} 1\n"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << " is not in\n" << metrics;
}

TEST(MetricsTest, UnmanagedMemoryHasASeriesWhereItIsKnown) {
  NodeReport report = Report();
  EXPECT_EQ(MetricsOf(report).find("spillway_gpu_memory_unmanaged_bytes{"), std::string::npos);

  report.devices[0].unmanaged_bytes = 3 * kGiB;
  report.devices[0].unmanaged = {{4711, "train", 3 * kGiB}};

  const std::string metrics = MetricsOf(report);
  EXPECT_NE(
      metrics.find("spillway_gpu_memory_unmanaged_bytes{gpu=\"0\",uuid=\"GPU-1\"} 3221225472\n"),
      std::string::npos);
  EXPECT_EQ(metrics.find("4711"), std::string::npos) << "a label holds a process number";
}

TEST(PagesTest, StatusNamesProcessesThatBypassTheAgent) {
  NodeReport report = Report();
  const auto status = Asking(protocol::Question::kStatus, protocol::Form::kText);
  report.devices[0].unmanaged_bytes = 0;
  EXPECT_EQ(PageOf(status, report).find("does not manage"), std::string::npos);

  report.devices[0].unmanaged_bytes = 4 * kGiB;
  report.devices[0].unmanaged = {{4711, "train", 3 * kGiB}, {12, "", kGiB}};

  const std::string page = PageOf(status, report);
  for (const char* line : {"is held by processes that the agent does not manage:\n",
                           "pid 4711  train\n", "pid 12  (name unknown)\n"})
    EXPECT_NE(page.find(line), std::string::npos) << page;
  const auto json = nlohmann::json::parse(
      PageOf(Asking(protocol::Question::kStatus, protocol::Form::kJson), report));
  EXPECT_EQ(json["devices"][0]["unmanaged"]["bytes"], 4 * kGiB);
  EXPECT_EQ(json["devices"][0]["unmanaged"]["processes"][0]["pid"], 4711);
}

TEST(MetricsTest, UnknownUsedMemoryHasNoSeries) {
  EXPECT_EQ(MetricsOf(Report()).find("spillway_gpu_memory_used_bytes"), std::string::npos);

  const std::string metrics = MetricsOf(Report(), {{"GPU-1", 42}, {"GPU-of-nobody", 43}});

  EXPECT_NE(metrics.find("spillway_gpu_memory_used_bytes{gpu=\"0\",uuid=\"GPU-1\"} 42\n"),
            std::string::npos);
  EXPECT_EQ(metrics.find("GPU-of-nobody"), std::string::npos);
}

TEST(MetricsTest, RejectedJobsDoNotWait) {
  NodeReport report = Report();
  report.jobs[0].tenancies[0].view.state = TenancyState::kRejected;

  const std::string metrics = MetricsOf(report);

  EXPECT_NE(metrics.find("spillway_jobs{phase=\"rejected\"} 1\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("spillway_jobs{phase=\"waiting\"} 0\n"), std::string::npos) << metrics;
}

TEST(MetricsTest, ProcessesWithoutAConnectionAreCountedSeparately) {
  NodeReport report = Report();
  report.jobs[0].parts = {{"0", {2, 1}}, {"batch", {1, 0}}};

  const std::string metrics = MetricsOf(report);

  for (const char* line :
       {"hpc_step=\"0\",state=\"connected\"} 1\n", "hpc_step=\"0\",state=\"detached\"} 1\n",
        "hpc_step=\"batch\",state=\"connected\"} 1\n"}) {
    EXPECT_NE(
        metrics.find(std::string("spillway_job_processes{job_id=\"slurm-1201\",hpc_job=\"1201\",") +
                     line),
        std::string::npos)
        << metrics;
  }
}

// Ids come from the control group, never from a tenant's messages.
TEST(MetricsTest, SeriesOfAPodAndOfAContainerBearTheirIds) {
  NodeReport report = Report();
  report.jobs[0].name = "pod-1f2e3d4c";
  report.jobs[0].source = JobSource::kKubernetes;
  report.jobs[0].source_id = "1f2e3d4c-0000";
  report.jobs[0].parts = {{"", {1, 0}}, {"aaaa", {2, 0}}};

  const std::string of_pod = MetricsOf(report);
  report.jobs[0].source = JobSource::kContainer;
  report.jobs[0].source_id = "bbbb";
  report.jobs[0].parts = {{"", {1, 0}}};
  const std::string of_container = MetricsOf(report);

  for (const char* line :
       {"spillway_job_memory_budget_bytes{job_id=\"pod-1f2e3d4c\",gpu=\"0\",uuid=\"GPU-1\",pod_uid="
        "\"1f2e3d4c-0000\"} ",
        "spillway_job_processes{job_id=\"pod-1f2e3d4c\",pod_uid=\"1f2e3d4c-0000\",container_id="
        "\"aaaa\","
        "state="
        "\"connected\"} 2\n",
        "spillway_job_processes{job_id=\"pod-1f2e3d4c\",pod_uid=\"1f2e3d4c-0000\",state="
        "\"connected\"} 1\n",
        "source=\"kubernetes\",pod_uid=\"1f2e3d4c-0000\"} 1\n"})
    EXPECT_NE(of_pod.find(line), std::string::npos) << line << " is not in\n" << of_pod;
  EXPECT_NE(of_container.find("uuid=\"GPU-1\",container_id=\"bbbb\"} "), std::string::npos)
      << of_container;
  EXPECT_EQ(of_container.find("pod_uid"), std::string::npos);
}

TEST(PagesTest, JobDocumentNamesItsSlurmPodAndContainer) {
  NodeReport report = Report();
  const auto job = [&] {
    const protocol::Ask ask = Asking(protocol::Question::kJobs, protocol::Form::kJson);
    return nlohmann::json::parse(PageOf(ask, report)).at("jobs").at(0);
  };
  EXPECT_EQ(job()["source"], "slurm");
  EXPECT_EQ(job()["slurm_job"], "1201");
  EXPECT_EQ(job()["slurm_steps"], nlohmann::json({"0"}));

  report.jobs[0].source = JobSource::kKubernetes;
  report.jobs[0].source_id = "1f2e3d4c-0000";
  report.jobs[0].parts = {{"", {1, 0}}, {"aaaa", {2, 0}}, {"bbbb", {1, 0}}};
  EXPECT_EQ(job()["pod_uid"], "1f2e3d4c-0000");
  EXPECT_EQ(job()["container_ids"], nlohmann::json({"aaaa", "bbbb"}));
  EXPECT_FALSE(job().contains("slurm_job"));

  report.jobs[0].source = JobSource::kLocal;
  EXPECT_FALSE(job().contains("container_ids"));
}

TEST(MetricsTest, PlanningSeriesShowOutcomesAndDurations) {
  NodeReport report = Report();
  report.planning.emplace();
  report.planning->outcomes = {5, 4, 3, 2, 1, 0, 7, 0};
  report.planning->by_seconds = {0, 2, 0, 0, 0, 0, 0, 0, 1};
  report.planning->planning_ns = 31'500'000'000;
  report.planning->store_evicted = 6;

  const std::string metrics = MetricsOf(report);

  for (const char* line : {"spillway_plan_requests_total{result=\"made\"} 5\n",
                           "spillway_plan_requests_total{result=\"failed\"} 7\n",
                           "spillway_plan_seconds_bucket{le=\"0.01\"} 0\n",
                           "spillway_plan_seconds_bucket{le=\"0.03\"} 2\n",
                           "spillway_plan_seconds_bucket{le=\"30\"} 2\n",
                           "spillway_plan_seconds_bucket{le=\"+Inf\"} 3\n",
                           "spillway_plan_seconds_count 3\n", "spillway_plan_seconds_sum 31.5\n",
                           "spillway_plan_store_discarded_total{reason=\"room\"} 6\n"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << " is not in\n" << metrics;
}

TEST(MetricsTest, HostPoolIsShownByNode) {
  NodeReport report = Report();
  report.pool.emplace();
  report.pool->by_node = {{kAnyNode, {64, 0}}, {1, {128, 64}}};

  const std::string metrics = MetricsOf(report);

  for (const char* line : {"spillway_pool_size_bytes{numa_node=\"any\"} 64\n",
                           "spillway_pool_size_bytes{numa_node=\"1\"} 128\n",
                           "spillway_pool_used_bytes{numa_node=\"1\"} 64\n"})
    EXPECT_NE(metrics.find(line), std::string::npos) << line << " is not in\n" << metrics;
}

TEST(MetricsTest, WithoutJobsThereAreNoJobSeries) {
  EXPECT_EQ(MetricsOf(NodeReport{}).find("job_id"), std::string::npos);
}

TEST(LogLinesTest, JobNameCannotForgeAField) {
  JobReport job = Report().jobs[0];
  job.command = "x\" uid=0";

  EXPECT_EQ(LogText(StartOf(job)),
            "job started job=slurm-1201 source=slurm uid=1000 command=\"x? uid=0\"");
  EXPECT_NE(LogText(EndOf(job)).find("seconds=90.000 devices=1"), std::string::npos)
      << LogText(EndOf(job));
}

TEST(DeviceListTest, ReadsUuids) {
  const auto uuid = ParseUuid("GPU-01fF0000-0000-0000-0000-0000000000a0");

  ASSERT_TRUE(uuid);
  EXPECT_EQ((*uuid)[0], 1);
  EXPECT_EQ((*uuid)[1], 0xff);
  EXPECT_EQ((*uuid)[15], 0xa0);
  for (const char* wrong : {"", "GPU-", "01ff0000-0000-0000-0000-0000000000a0",
                            "GPU-01ff0000-0000-0000-0000-0000000000",
                            "GPU-01ff0000-0000-0000-0000-0000000000a0a0", "GPU-zz"}) {
    EXPECT_FALSE(ParseUuid(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace spillway::agent
