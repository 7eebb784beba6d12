#include <cctype>

#include "agent/node/node.h"
#include "protocol/bulk.h"

namespace spillway::agent {

using protocol::PlanOutcome;

// Pods and containers often run as root, so the owner's name includes theirs. Their processes can
// take any user id, so the whole pod or container shares one part of the planners.
PlanOwner Node::PlanOwnerOf(const Session& session) const {
  const Job& job = jobs_.at(session.job);
  const std::string user = "user-" + std::to_string(session.peer->uid());
  PlanOwner owner = {user, user};
  if (job.source != JobSource::kKubernetes && job.source != JobSource::kContainer) return owner;
  owner.name += '-';
  for (const char letter : job.key)
    owner.name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '-';
  owner.tenant = job.key;
  return owner;
}

bool Node::TakePlanMessage(Session& session, protocol::Received& received) {
  if (const auto* ask = std::get_if<protocol::AskPlan>(&received.message))
    return On(session, *ask, received.files), true;
  if (const auto* recall = std::get_if<protocol::RecallPlans>(&received.message))
    return On(session, *recall), true;
  return false;
}

void Node::On(Session& session, const protocol::AskPlan& ask, std::vector<base::UniqueFd>& files) {
  if (session.registrations.count(ask.device) == 0)
    return Refuse(session, protocol::ErrorCode::kOutOfOrder, "this device is not registered");
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
  planning_->Ask({session.id, PlanOwnerOf(session), ask, std::move(files.front())});
}

void Node::On(Session& session, const protocol::RecallPlans& recall) {
  if (session.registrations.count(recall.device) == 0)
    return Refuse(session, protocol::ErrorCode::kOutOfOrder, "this device is not registered");
  if (planning_ != nullptr) return planning_->Recall(session.id, PlanOwnerOf(session), recall);
  session.channel->Send(
      protocol::RecalledPlans{.device = recall.device, .program = recall.program});
}

// No reply is kept for a client that does not read: it plans for itself by then.
void Node::SendPlans() {
  if (planning_ == nullptr) return;
  for (const Planning::Reply& reply : planning_->TakeReplies()) {
    Session* const session = Find(reply.session);
    if (session == nullptr || session->channel == nullptr) continue;
    std::vector<int> files;
    for (const base::UniqueFd& file : reply.files) files.push_back(file.get());
    std::visit([&](const auto& message) { session->channel->Send(message, files); }, reply.message);
  }
}

}  // namespace spillway::agent
