#ifndef TENSORD_SERVER_RPC_PROGRAM_LOOKUP_H_
#define TENSORD_SERVER_RPC_PROGRAM_LOOKUP_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/program_cache.h"
#include "engine/runtime/renaming.h"
#include "server/rpc/rpc_request.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// How a call gets the program that it is about, and what is recorded of that.

// Who waits for a compilation waits until the request's deadline or cancellation at the most: then `then` is called
// with DEADLINE_EXCEEDED or CANCELLED on the thread of the alarms, and the compilation goes on for the others. Where
// there are none it is dropped, or broken off.

// By fingerprint, from memory or from the disk. PROGRAM_NOT_FOUND. Calls `then` once: here where the program is in
// memory or nowhere, else in a turn of the call's tenant.
using FoundThen = std::function<void(absl::StatusOr<CompiledProgramPtr>)>;
void FindProgram(RpcRequest* call, absl::string_view fingerprint, FoundThen then);

// The same from memory alone. Null where it is not there.
CompiledProgramPtr FindProgramInMemory(RpcRequest* call, const Fingerprint& fingerprint);

// The fingerprint of the one program in memory or on the disk that begins with these digits, four or more; other
// tenants' programs are none. For operators: who may ask by digits finds every fingerprint, and with it every program
// and its constants. PERMISSION_DENIED, PROGRAM_NOT_FOUND, FINGERPRINT_AMBIGUOUS.
absl::StatusOr<Fingerprint> CompleteFingerprint(RpcRequest* call, absl::string_view prefix);

// A program for a graph, and what the graph calls its nodes.
struct ProgramOfGraph {
  ProgramCache::Found found;
  Renaming renaming;
};
using ProgramThen = std::function<void(absl::StatusOr<ProgramOfGraph>)>;

// By graph: from the cache, or compiled. Calls `then` once, here or in a turn of the call's tenant. Takes what it
// needs of the messages before it returns. Refuses what the codec and the compiler refuse.
void CompileProgram(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options, ProgramThen then);

// The same past the cache, which is neither asked nor filled: the program has the graph's own names throughout.
void CompileApart(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options,
                  std::function<void(absl::StatusOr<CompiledProgramPtr>)> then);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAM_LOOKUP_H_
