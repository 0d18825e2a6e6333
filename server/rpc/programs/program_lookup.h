#ifndef TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_LOOKUP_H_
#define TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_LOOKUP_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/compile/renaming.h"
#include "engine/runtime/devices/device_executor.h"
#include "engine/runtime/programs/program_cache.h"
#include "server/rpc/calls/rpc_request.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Lookup of a call's program, with its record.
//
// A call waits for a compilation until its deadline or cancellation. `then` is called with DEADLINE_EXCEEDED or
// CANCELLED on the thread of the alarms, and the compilation goes on for other calls; without any it is dropped, or
// broken off.

// Finds a program by its fingerprint, in memory or on disk: PROGRAM_NOT_FOUND. Calls `then` once: before it returns if
// the program is in memory or nowhere, else in a turn of the call's tenant.
using FoundThen = std::function<void(absl::StatusOr<CompiledProgramPtr>)>;
void FindProgram(RpcRequest* call, absl::string_view fingerprint, FoundThen then);

// Finds a program in memory alone; null if it is not there.
CompiledProgramPtr FindProgramInMemory(RpcRequest* call, const Fingerprint& fingerprint);

// Completes a fingerprint from its first digits, four or more, among the tenant's programs in memory and on disk. For
// operators alone: by trying digits a caller finds every fingerprint, and with it every program and its constants.
// PERMISSION_DENIED, PROGRAM_NOT_FOUND, FINGERPRINT_AMBIGUOUS.
absl::StatusOr<Fingerprint> CompleteFingerprint(RpcRequest* call, absl::string_view prefix);

// A program for a graph, and the graph's own names of its nodes.
struct ProgramOfGraph {
  ProgramCache::Found found;
  Renaming renaming;
  DeviceExecutor* executor = nullptr;  // of its device
};
using ProgramThen = std::function<void(absl::StatusOr<ProgramOfGraph>)>;

// Finds the program of a graph in the cache, or compiles it. Calls `then` once, before it returns or in a turn of the
// call's tenant. Does not keep the messages. Refuses as the codec and the compiler do.
void CompileProgram(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options, ProgramThen then);

// Compiles a graph without asking or filling the cache: the program has the graph's own names throughout.
void CompileApart(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options,
                  std::function<void(absl::StatusOr<CompiledProgramPtr>)> then);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_LOOKUP_H_
