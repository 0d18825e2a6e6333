#ifndef TENSORD_SERVER_RPC_RUN_HERE_H_
#define TENSORD_SERVER_RPC_RUN_HERE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/run.h"

namespace tensord::server {

// Whether a program's run is over so soon that waking an executor's thread for it, and another one afterwards to send
// the answer, would cost several times the run: a few core ops on a few kilobytes, with all sizes known. Constant for a
// program.
bool IsWorthNoThread(const CompiledProgram& program);

// Runs such a program on the calling thread. Refuses what the executor would.
absl::StatusOr<RunOutcome> RunHere(const CompiledProgram& program, absl::Span<const HostTensor> arguments);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_RUN_HERE_H_
