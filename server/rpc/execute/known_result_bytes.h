#ifndef TENSORD_SERVER_RPC_EXECUTE_KNOWN_RESULT_BYTES_H_
#define TENSORD_SERVER_RPC_EXECUTE_KNOWN_RESULT_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/compile/compiled_program.h"
#include "engine/runtime/devices/run.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Returns the total bytes of those results of a run, by output, whose sizes follow from the arguments'; each counts
// `least_bytes` at least, and results whose sizes the run decides count nothing. Refuses arguments that the program
// does not take.
absl::StatusOr<int64_t> KnownResultBytes(const CompiledProgram& program, absl::Span<const size_t> results,
                                         absl::Span<const RunTensor> arguments, int64_t least_bytes = 0);

// Returns the bytes of the results that a request wants sent whose sizes are known before the run. LIMIT_EXCEEDED where
// no response takes them.
absl::StatusOr<int64_t> KnownSentBytes(const v1::ExecuteRequest& request, const CompiledProgram& program,
                                       const RunRequest& run);

// Tells whether a run decides the size of a result.
bool DecidesSizes(const CompiledProgram& program);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_KNOWN_RESULT_BYTES_H_
