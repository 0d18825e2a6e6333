#ifndef TENSORD_SERVER_RPC_EXECUTE_EXECUTION_STATE_H_
#define TENSORD_SERVER_RPC_EXECUTE_EXECUTION_STATE_H_

#include <cstdint>

namespace tensord::server {

// How far one execution is. It waits without a thread in kFinding, kAwaiting, kDecoding (for a turn, before long
// copies), kSizing and kQueued, and whoever ends the wait goes on with it.
//
//   kArrived ─→ kFinding ─→ kDecoding ─→ kQueued ──→ kEncoding ─→ kAnswered
//                  │  kAwaiting ↑ │  kSizing ↑ │ kRunningHere ↑
//
// From every state but the last it may go to kAnswered: refused, cancelled, expired, or failed.
enum class ExecutionState : uint8_t {
  kArrived,      // nothing is claimed yet
  kFinding,      // its handles are claimed; the program is looked up, or compiled
  kAwaiting,     // for tensors that earlier requests make
  kDecoding,     // the run is made of the arguments
  kSizing,       // the compile pool makes what the sizes of the arguments need: the program, transpositions
  kQueued,       // the run is the executor's
  kRunningHere,  // the run, a tiny one, is on this thread
  kEncoding,     // the results become the response
  kAnswered,     // the request is gone
};

// Says whether an execution may go from a state to that one.
constexpr bool MayFollow(ExecutionState next, ExecutionState state) {
  using enum ExecutionState;
  if (next == kAnswered) return state != kAnswered;
  switch (state) {
    case kArrived:
      return next == kFinding;
    case kFinding:
      return next == kAwaiting || next == kDecoding;
    case kAwaiting:
      return next == kDecoding;
    case kDecoding:
      return next == kSizing || next == kQueued || next == kRunningHere;
    case kSizing:
      return next == kQueued || next == kRunningHere;
    case kQueued:
    case kRunningHere:
      return next == kEncoding;
    case kEncoding:
    case kAnswered:
      break;
  }
  return false;
}

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_EXECUTION_STATE_H_
