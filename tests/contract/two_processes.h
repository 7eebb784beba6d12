// Two processes for one case: a partner, forked before any CUDA call, and a connection.
//
// Called by: cases, as their first step. The partner sends its findings, and the case judges.
// Ownership: the partner ends with `body`; the destructor of `Partner` waits for that.
#pragma once

#include <sys/types.h>

#include <functional>

#include "tests/contract/device.h"

namespace spillway::contract {

// Every function abandons the case when the other end is closed.
class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}

  template <typename T>
  void Send(const T& value) const {
    SendBytes(&value, sizeof value);
  }
  template <typename T>
  T Receive() const {
    T value;
    ReceiveBytes(&value, sizeof value);
    return value;
  }
  void SendDescriptor(int descriptor) const;
  int ReceiveDescriptor() const;

 private:
  void SendBytes(const void* bytes, std::size_t size) const;
  void ReceiveBytes(void* bytes, std::size_t size) const;

  const int socket_;
};

class Partner {
 public:
  explicit Partner(const std::function<void(const Line&)>& body);
  ~Partner();
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  const Line& line() const { return line_; }

 private:
  explicit Partner(const int (&sockets)[2], const std::function<void(const Line&)>& body);

  Line line_;
  int socket_;
  pid_t process_;
};

}  // namespace spillway::contract
