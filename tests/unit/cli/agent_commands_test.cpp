// The commands against an agent that notes what it is asked.
#include "cli/agent_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "cli/failure.h"
#include "protocol/bulk.h"
#include "protocol/socket_channel.h"
#include "tests/support/scratch_folder.h"

namespace spillway::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJobs[] =
    R"({"jobs": [{"job": "container-0123456789ab"}, {"job": "slurm-1201"}, {"job": "slurm-1207"}]})";

// Serves one client.
class NotingAgent {
 public:
  NotingAgent() : thread_([this] { Serve(); }) {}
  ~NotingAgent() { thread_.join(); }

  std::string address() const { return address_; }

  // After the client has gone.
  std::vector<std::string> Asked() {
    thread_.join();
    thread_ = std::thread([] {});
    return asked_;
  }

 private:
  void Serve() {
    Await(listener_.get());
    protocol::SocketChannel client(protocol::AcceptFrom(listener_.get()));
    while (true) {
      Await(client.file());
      const protocol::Received received = client.Receive();
      if (received.what != protocol::Received::What::kMessage) return;
      Answer(received.message, client);
    }
  }

  static void Await(int file) {
    pollfd wanted{file, POLLIN, 0};
    poll(&wanted, 1, -1);
  }

  void Answer(const protocol::Message& message, protocol::SocketChannel& client) {
    if (std::holds_alternative<protocol::Hello>(message)) {
      client.Send(protocol::Welcome{protocol::kNewestVersion, 1, 1, 500});
    } else if (const auto* ask = std::get_if<protocol::Ask>(&message)) {
      const bool is_of_job = ask->question == protocol::Question::kJob;
      asked_.push_back(is_of_job ? "job " + std::string(ask->job.view()) : "jobs");
      if (is_of_job && !Knows(ask->job.view())) return Refuse(client);
      Send(is_of_job ? std::string(ask->job.view()) + " runs\n" : kJobs, client);
    } else if (const auto* set = std::get_if<protocol::SetBudget>(&message)) {
      asked_.push_back("budget of " + std::string(set->job.view()));
      if (!Knows(set->job.view())) return Refuse(client);
      client.Send(protocol::Done{});
    }
  }

  static bool Knows(std::string_view job) {
    return std::string_view(kJobs).find("\"" + std::string(job) + "\"") != std::string_view::npos;
  }

  static void Refuse(protocol::SocketChannel& client) {
    client.Send(protocol::Done{protocol::Outcome::kUnknownJob, "no such job runs here"});
  }

  static void Send(std::string_view text, protocol::SocketChannel& client) {
    const base::UniqueFd file = protocol::SealedCopy(text);
    const int files[] = {file.get()};
    client.Send(protocol::Document{1, text.size()}, files);
  }

  const test::ScratchFolder folder_;
  const std::string address_ = folder_.path() + "/agent.sock";
  const base::UniqueFd listener_ = protocol::ListenOn(address_, 0600);
  std::vector<std::string> asked_;
  std::thread thread_;
};

std::string OutputOf(std::vector<std::string> words, const NotingAgent& agent) {
  words.insert(words.end(), {"--socket", agent.address()});
  testing::internal::CaptureStdout();
  try {
    RunAgentCommand(words);
  } catch (const Failure& failure) {
    return testing::internal::GetCapturedStdout() + failure.text();
  }
  return testing::internal::GetCapturedStdout();
}

TEST(AgentCommandsTest, AWholeNameTakesOneQuestion) {
  NotingAgent agent;
  EXPECT_EQ(OutputOf({"job", "slurm-1201"}, agent), "slurm-1201 runs\n");
  EXPECT_THAT(agent.Asked(), ElementsAre("job slurm-1201"));
}

TEST(AgentCommandsTest, APartOfANameIsLookedUpInTheList) {
  NotingAgent agent;
  EXPECT_EQ(OutputOf({"job", "1207"}, agent), "slurm-1207 runs\n");
  EXPECT_THAT(agent.Asked(), ElementsAre("job 1207", "jobs", "job slurm-1207"));
}

TEST(AgentCommandsTest, WhatIsPartOfNoNameIsRefusedOnce) {
  NotingAgent agent;
  EXPECT_THAT(OutputOf({"job", "slurm-9"}, agent), HasSubstr("no such job runs here"));
  EXPECT_THAT(agent.Asked(), ElementsAre("job slurm-9", "jobs"));
}

TEST(AgentCommandsTest, WhatIsPartOfTwoNamesListsThem) {
  NotingAgent agent;
  EXPECT_THAT(OutputOf({"job", "slurm"}, agent), HasSubstr("slurm-1201, slurm-1207"));
  EXPECT_THAT(agent.Asked(), ElementsAre("job slurm", "jobs"));
}

TEST(AgentCommandsTest, ABudgetIsSetByAWholeNameAtOnceAndByAPart) {
  {
    NotingAgent agent;
    EXPECT_EQ(OutputOf({"budget", "set", "slurm-1201", "8GiB"}, agent),
              "the terms of slurm-1201 are changed\n");
    EXPECT_THAT(agent.Asked(), ElementsAre("budget of slurm-1201"));
  }
  NotingAgent agent;
  EXPECT_EQ(OutputOf({"budget", "set", "container-0123", "8GiB"}, agent),
            "the terms of container-0123456789ab are changed\n");
  EXPECT_THAT(agent.Asked(),
              ElementsAre("budget of container-0123", "jobs", "budget of container-0123456789ab"));
}

}  // namespace
}  // namespace spillway::cli
