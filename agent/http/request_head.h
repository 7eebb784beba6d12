// Parses the head of an HTTP/1.x request: method, path, or the error. Pure.
//
// Invariants
//  1. The result depends on the bytes alone, not on the pieces in which they arrived.
//  2. Bytes behind the head (a body, another request) change nothing.
//  3. A refused head has a status of RFC 9110: 400, 414, 431 or 505.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace spillway::agent {

inline constexpr size_t kMostHeadBytes = 8192;

struct RequestHead {
  enum class State { kIncomplete, kComplete, kRefused };
  State state = State::kIncomplete;
  int status = 200;  // of kRefused: sent to the client
  std::string method, path = {};
  std::string authorization = {}, host = {};  // those fields' values
};

RequestHead ReadRequestHead(std::string_view received);

}  // namespace spillway::agent
