#ifndef TENSORD_SERVER_RPC_EXECUTE_EXECUTION_STATS_H_
#define TENSORD_SERVER_RPC_EXECUTE_EXECUTION_STATS_H_

#include "engine/runtime/compile/compiled_program.h"
#include "engine/runtime/compile/renaming.h"
#include "engine/runtime/devices/run.h"
#include "server/observe/records/request_record.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Encodes a run's statistics for the client, in the names of its own graph.
void EncodeStats(const RequestRecord& record, const CompiledProgram& program, const RunOutcome& outcome,
                 const Renaming& renaming, bool with_segments, v1::ExecutionStats* stats);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_EXECUTION_STATS_H_
