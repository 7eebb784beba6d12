// A reference to something callable, for parameters that are called before the function returns.
// Owns nothing.
//
// A lambda that requires a lock is taken, too: whoever declares such a parameter says which lock is
// held in the call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "base/mutex.h"

namespace spillway::base {

template <class Signature>
class FunctionRef;

template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, FunctionRef>)
      FunctionRef(Function&& function)  // implicit: it stands for the function
      : function_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* f, Arguments... arguments) SPILLWAY_UNANALYSED -> Result {
          return (*static_cast<std::remove_reference_t<Function>*>(f))(
              std::forward<Arguments>(arguments)...);
        }) {}
  Result operator()(Arguments... arguments) const {
    return call_(function_, std::forward<Arguments>(arguments)...);
  }

 private:
  void* function_;
  Result (*call_)(void*, Arguments...);
};

}  // namespace spillway::base
