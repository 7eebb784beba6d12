// A non-owning reference to a callable, for parameters that are called before the function returns.
// The parameter's declaration states which lock the call holds.
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
      FunctionRef(Function&& function)  // implicit, like std::function
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
