// How the processes on one device share its link: slots, weights and rates. Clients get the two
// files and their slot's number, and take turns themselves (protocol/link_turn.h).
//
// Invariants
//  1. A slot belongs to one process and is reused only after Leave.
//  2. Clients can write the lanes, not the terms. Neither file can change its size, and clients
//     cannot seal them.
// Never: decides by numbers that clients wrote (AdmittedBytes); they are for display.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/mapping.h"
#include "base/unique_fd.h"
#include "protocol/link_page.h"

namespace spillway::agent {

struct LinkRates {
  int64_t to_device_bytes_per_second = 0;  // 0: no limit
  int64_t to_host_bytes_per_second = 0;
};

class LinkShare {
 public:
  static std::optional<LinkShare> Make(const LinkRates& rates);
  LinkShare(LinkShare&&) noexcept = default;
  LinkShare& operator=(LinkShare&&) noexcept = default;

  // Nullopt: all slots are taken.
  std::optional<uint32_t> Join(uint32_t weight);
  void SetWeight(uint32_t slot, uint32_t weight);
  void Leave(uint32_t slot);
  void SetRates(const LinkRates& rates);

  // Resets lane values that no honest client can have written. Call it at least once a second:
  // until then clients wait as long as their weights alone demand.
  void Mend(int64_t now_ns);

  // For clients; the first is open for reading only.
  int terms_file() const { return terms_for_clients_.get(); }
  int lanes_file() const { return lanes_file_.get(); }
  int64_t AdmittedBytes(uint32_t slot, protocol::Direction direction) const;

 private:
  LinkShare(base::UniqueFd terms_file, base::UniqueFd lanes_file);
  void Recount();
  protocol::LinkTerms& terms() const { return terms_memory_.As<protocol::LinkTerms>(); }
  protocol::LinkLanes& lanes() const { return lanes_memory_.As<protocol::LinkLanes>(); }

  base::UniqueFd terms_for_clients_;
  base::UniqueFd lanes_file_;
  base::Mapping terms_memory_;
  base::Mapping lanes_memory_;
};

}  // namespace spillway::agent
