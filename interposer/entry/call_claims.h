// The claims of a thread's library call in progress, for its launches (ledger/claims.h).
//
// The hooks of cuDNN and cuBLAS set it during their calls. The outer call's claims cover nested
// calls, which make none of their own.
#pragma once

#include "interposer/execute/job_memory.h"
#include "interposer/ledger/claims.h"

namespace spillway::entry {

inline constinit thread_local interposer::LibraryCall* library_call
    __attribute__((tls_model("initial-exec"))) = nullptr;

// `reaches`: it may have used others, too.
inline void NoteInCall(const interposer::Addresses& addresses, bool reaches) {
  ++library_call->works;
  library_call->claims->NoteNamed({addresses.begin(), addresses.size()});
  if (reaches) library_call->claims->NoteAnything();
}

}  // namespace spillway::entry
