#include "agent/node/holdings/plan_requests.h"

#include <cctype>

#include "protocol/bulk.h"

namespace spillway::agent {

using protocol::PlanOutcome;

bool PlanRequests::IsOne(const protocol::Message& message) {
  return std::holds_alternative<protocol::AskPlan>(message) ||
         std::holds_alternative<protocol::RecallPlans>(message);
}

std::optional<Refusal> PlanRequests::Take(const Session& session, protocol::Received& received) {
  const auto* const ask = std::get_if<protocol::AskPlan>(&received.message);
  const auto* const recall = std::get_if<protocol::RecallPlans>(&received.message);
  const uint32_t device = ask != nullptr ? ask->device : recall->device;
  if (session.registrations.count(device) == 0) return NotRegistered();
  if (ask != nullptr)
    Take(session, *ask, received.files);
  else
    Take(session, *recall);
  return std::nullopt;
}

// Pods and containers often run as root, so the owner's name includes theirs. Their processes can
// take any user id, so the whole pod or container shares one part of the planners.
PlanOwner PlanRequests::OwnerOf(const Session& session, uint32_t device) const {
  const Job& job = table_.JobOf(session);
  const std::string user = "user-" + std::to_string(session.uid());
  PlanOwner owner = {user, user, job.name,
                     static_cast<uint32_t>(session.registrations.at(device).device)};
  if (!job.IsContained()) return owner;
  owner.name += '-';
  for (const char letter : job.key)
    owner.name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '-';
  owner.tenant = job.key;
  return owner;
}

void PlanRequests::Take(const Session& session, const protocol::AskPlan& ask,
                        std::vector<base::UniqueFd>& files) {
  protocol::PlanReply reply = {.device = ask.device, .ticket = ask.ticket};
  if (planning_ == nullptr) {
    reply.reason = "this agent does not plan";
    session.channel->Send(reply);
    return;
  }
  if (files.size() != 1 || !protocol::IsSealed(files.front().get(), ask.size_bytes)) {
    reply.outcome = PlanOutcome::kRefused;
    reply.reason = "the request is not one sealed file of its size";
    session.channel->Send(reply);
    return;
  }
  planning_->Ask({session.id, OwnerOf(session, ask.device), ask, std::move(files.front())});
}

void PlanRequests::Take(const Session& session, const protocol::RecallPlans& recall) {
  if (planning_ != nullptr)
    return planning_->Recall(session.id, OwnerOf(session, recall.device), recall);
  session.channel->Send(
      protocol::RecalledPlans{.device = recall.device, .program = recall.program});
}

void PlanRequests::SendReplies() {
  if (planning_ == nullptr) return;
  for (const Planning::Reply& reply : planning_->TakeReplies()) {
    const Session* const session = table_.Find(reply.session);
    if (session == nullptr || session->channel == nullptr) continue;
    std::vector<int> files;
    for (const base::UniqueFd& file : reply.files) files.push_back(file.get());
    std::visit([&](const auto& message) { session->channel->Send(message, files); }, reply.message);
  }
}

void PlanRequests::Forget(SessionId id) {
  if (planning_ != nullptr) planning_->Forget(id);
}

}  // namespace spillway::agent
