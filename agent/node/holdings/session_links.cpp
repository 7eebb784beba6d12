#include "agent/node/holdings/session_links.h"

#include <algorithm>

#include "protocol/link_page.h"

namespace spillway::agent {

namespace {

constexpr int64_t kLinkCheckNs = 1'000'000'000;

}  // namespace

void SessionLinks::NoteGrant(const Session& session, uint32_t number, Registration& registration,
                             int32_t link_permille) {
  if (shares_ == nullptr || !KnowsShares(session)) return;
  const auto weight = static_cast<uint32_t>(std::max(link_permille, 1));
  if (registration.place)
    return shares_->SetLinkWeight(registration.device, registration.place->slot, weight);
  registration.place = shares_->JoinLink(registration.device, weight);
  if (!registration.place) return;
  const protocol::LinkPlace place = {number, protocol::kLinkLayout, registration.place->slot};
  const int files[] = {registration.place->terms_file, registration.place->lanes_file};
  if (session.channel->Send(place, files) == protocol::Sent::kSent) return;
  Leave(registration);
  registration.place.reset();
}

void SessionLinks::Leave(const Registration& registration) {
  if (shares_ != nullptr && registration.place)
    shares_->LeaveLink(registration.device, registration.place->slot);
}

void SessionLinks::Settle(int64_t now_ns) {
  if (shares_ == nullptr || now_ns < next_check_ns_) return;
  next_check_ns_ = now_ns + kLinkCheckNs;
  shares_->MendLinks(now_ns);
}

}  // namespace spillway::agent
