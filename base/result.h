// A value or an error: the one way to report failure.
//
// Invariants
//  1. A Status without an error is a success. A Result has either a value or an error, never both.
//  2. An error says what is wrong, why if known, and what to do if anything helps. Each part is a
//     phrase or a sentence without its full stop.
// Never aborts. Callers check for a value before they read it.
#pragma once

#include <errno.h>
#include <string.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace spillway::base {

// In English whatever the process's locale; any thread.
inline const char* ErrnoText(int code) {
  const char* const text = strerrordesc_np(code);
  return text ? text : "unknown error";
}

struct Error {
  std::string what;
  std::string why = {};
  std::string remedy = {};
  int code = 0;  // the errno; 0 if there is none

  // "what: why; remedy", without the empty parts.
  std::string text() const {
    std::string whole = what;
    if (!why.empty()) whole += (whole.empty() ? "" : ": ") + why;
    if (!remedy.empty()) whole += "; " + remedy;
    return whole;
  }
};

// For a failed system call, before anything sets errno.
inline Error ErrnoError(std::string what, std::string remedy = {}) {
  const int code = errno;
  return {std::move(what), ErrnoText(code), std::move(remedy), code};
}

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error)
      : error_(std::move(error)) {}  // implicit: `return Error{...}` is a failed Status

  bool ok() const { return !error_; }
  const Error& error() const& { return *error_; }
  Error error() && { return std::move(*error_); }
  std::string text() const { return error_ ? error_->text() : std::string(); }

  // Puts the context before the error: "PATH: No space left on device".
  Status Annotate(std::string_view context) && {
    if (error_)
      error_->what = std::string(context) + (error_->what.empty() ? "" : ": ") + error_->what;
    return std::move(*this);
  }

 private:
  std::optional<Error> error_;
};

inline Status Ok() { return {}; }

template <class T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<std::remove_cv_t<T>, Error> && !std::is_reference_v<T>);

 public:
  Result(T value) : value_(std::move(value)) {}       // implicit, like an optional's
  Result(Error error) : status_(std::move(error)) {}  // implicit: `return Error{...}`
  Result(Status failed) : status_(std::move(failed)) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }

  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T value_or(T otherwise) && { return value_ ? *std::move(value_) : std::move(otherwise); }
  std::optional<T> optional() && { return std::move(value_); }

  bool operator==(const T& expected) const { return value_ && *value_ == expected; }

  const Error& error() const& { return status_.error(); }
  Error error() && { return std::move(status_).error(); }
  const Status& status() const { return status_; }
  std::string text() const { return status_.text(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace spillway::base
