#ifndef TENSORD_SERVER_RPC_EXECUTE_EXECUTE_ARGUMENTS_H_
#define TENSORD_SERVER_RPC_EXECUTE_EXECUTE_ARGUMENTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/compile/compiled_program.h"
#include "engine/runtime/devices/run.h"
#include "server/lifecycle/added_bytes.h"
#include "server/rpc/calls/service_parts.h"
#include "server/rpc/execute/received_execute.h"
#include "server/sessions/handle_claim.h"

namespace tensord::server {

// The memory of copies of arguments, to be held while the arguments are.
struct ArgumentCopies {
  std::vector<MemoryCharge> charges;  // of resident tensors
  std::vector<AddedBytes> added;      // of those in shared memory
};

// Decodes the arguments of a request in the form that a program takes.
//
// A tensor in the program's order is borrowed from the request, which it keeps alive and which must not be const
// itself: the run may write over it. A resident tensor is read in place, in its device's memory, and written over if
// `writable` says so, by use of the claim; the other order of one is made by a device with memory of its own. A client
// may write over its shared memory at any time: a tensor there is read in place if that hurts nobody else
// (InputsThatMayChange), and else copied first. A tensor in the other order is copied.
//
// ARGUMENT_COUNT; naming the argument, the refusals of the tensor codec, of InOtherOrder and of FindShared,
// LIMIT_EXCEEDED, and ARGUMENT_MISMATCH for a tensor on another device.
absl::StatusOr<std::vector<RunTensor>> DecodeArguments(const std::shared_ptr<const ReceivedExecute>& request,
                                                       const CompiledProgram& program, const HandleClaim& claim,
                                                       absl::Span<const bool> writable, const ServiceParts& parts,
                                                       const std::string& tenant, ArgumentCopies* copies);

// Returns the bytes that Gather and DecodeArguments copy of them, as far as they are right; the claim's tensors are
// there.
int64_t CopiedBytes(const ReceivedExecute& received, const CompiledProgram& program, const HandleClaim& claim,
                    const ServiceParts& parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_EXECUTE_ARGUMENTS_H_
