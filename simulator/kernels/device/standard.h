// Parts of C++20's library for programs that are compiled as C++17.
#pragma once

#include <cstring>
#include <type_traits>

namespace spillway::simulator::device {

template <typename T>
struct Identity {
  using type = T;
};
template <typename T>
using NotDeduced = typename Identity<T>::type;

template <typename To, typename From>
inline To BitCast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename... T>
using IfArithmetic = std::enable_if_t<(std::is_arithmetic_v<T> && ...), int>;

}  // namespace spillway::simulator::device
