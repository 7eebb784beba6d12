// Before a stream comes to something that the program does when it likes: a word that it awaits, a
// host function.
//
// Called by the hooks of such calls, outermost, on the caller's thread. Behind that point nothing
// can be asked of the stream: what it did before is marked first, so that its memory may leave
// while the program goes on to do its part.
#pragma once

#include "interposer/entry/around.h"
#include "interposer/entry/transfers.h"

namespace spillway::entry {

inline void AboutToWaitForTheProgram(StreamName stream) {
  NoteThatTheProgramActsInStreams();
  if (interposer::IsCapturing(stream)) return;
  ForEachJob([stream](JobMemory* job) { job->streams().AboutToWait(stream); });
}

}  // namespace spillway::entry
