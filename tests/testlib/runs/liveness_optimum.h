#ifndef TENSORD_TESTS_TESTLIB_RUNS_LIVENESS_OPTIMUM_H_
#define TENSORD_TESTS_TESTLIB_RUNS_LIVENESS_OPTIMUM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/exec/binding/bound_program.h"

namespace tensord {

// The most bytes of temporaries and results that are alive during one instruction: an operand counts up to its last
// reader, an output to the end, and a result that may be written over an operand that is read last with it once.
// Counted from the readers themselves; views are taken from the binding. `scratch`, by instruction, is alive with it.
int64_t LivenessOptimum(const ExecProgram& program, const BoundProgram& bound, absl::Span<const int64_t> scratch);

// Returns the bytes that a plan takes for the same: the arena and the buffers of results.
int64_t PlannedBytes(const BufferPlan& plan);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RUNS_LIVENESS_OPTIMUM_H_
