// What the library call that goes on around a thread's launches promises of their memory
// (ledger/claims.h).
//
// Set by the hooks of cuDNN and cuBLAS for the length of their calls, read by the hooks of the
// driver below them on the same thread. A call within a call says nothing of its own: what the
// outer one says holds for its launches too.
#pragma once

#include "interposer/execute/job_memory.h"
#include "interposer/ledger/claims.h"

namespace spillway::entry {

// Null outside of such calls.
inline constinit thread_local interposer::LibraryCall* library_call
    __attribute__((tls_model("initial-exec"))) = nullptr;

// Work of the call has named these addresses; `reaches`: and may have used others.
inline void NoteInCall(const interposer::Addresses& addresses, bool reaches) {
  ++library_call->works;
  library_call->claims->NoteNamed({addresses.begin(), addresses.size()});
  if (reaches) library_call->claims->NoteAnything();
}

}  // namespace spillway::entry
