// Whether the Host field of a request may name an agent that listens on loopback. Pure.
//
// Note [Names of loopback]
// A browser lets a site's page read what the site's own name answers, also after that name leads to
// 127.0.0.1 (DNS rebinding): the page of any site could then read an agent that only the node's
// users reach. So the agent answers only to names that no foreign DNS server can lead here.
#pragma once

#include <string_view>

namespace spillway::agent {

// "localhost", a literal address, the name in `address` (as in [agent] http), or none; each with
// any port, as tunnels have others.
bool IsNameOfLoopback(std::string_view host, std::string_view address);

}  // namespace spillway::agent
