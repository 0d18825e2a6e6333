#ifndef TENSORD_ENGINE_EXEC_BINDING_RUN_OPERATIONS_H_
#define TENSORD_ENGINE_EXEC_BINDING_RUN_OPERATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/exec/backend/backend.h"

namespace tensord {

// Returns about how many operations on numbers one run of the instruction takes: for a fused one as many as it has, in
// each point of its space; for others the number of their OpDef.
double OperationsOf(const BoundInstruction& instruction);

// The operations of one run, or of a part of it. The instructions outlive it.
struct RunOperations {
  double all = 0;
  double most = 0;                 // of one kernel
  absl::string_view node;          // the node that it computes, and the op that the client gave that node
  const OpDef* written = nullptr;  // null: there is no kernel

  // Another part of the same run.
  void Add(const RunOperations& other);
};

// Returns the operations of all these segments together. Asks StopRequested.
RunOperations OperationsOf(absl::Span<const SegmentInstruction> segments);

// Fails with LIMIT_EXCEEDED if the run takes more than `most`; names the node of the kernel that takes most.
absl::Status CheckOperations(const RunOperations& run, int64_t most);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_RUN_OPERATIONS_H_
