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

// What copies of arguments take, to be held while the arguments are.
struct ArgumentCopies {
  std::vector<MemoryCharge> charges;  // of resident tensors
  std::vector<AddedBytes> added;      // of those in shared memory
};

// The arguments of a request as a program takes them. A tensor in the program's order is borrowed from the request,
// which it keeps alive and which must not be const itself: the run may write over it. A resident one is read where it
// lies, and written over where `writable` says so, by use of the claim. One in shared memory, which its client may
// write over at any time, is read where it lies where that hurts nobody else (InputsThatMayChange), and else copied
// first. What is in the other order is copied. ARGUMENT_COUNT; naming the argument, what the tensor codec refuses, what
// InOtherOrder and FindShared do, LIMIT_EXCEEDED, and ARGUMENT_MISMATCH for a tensor on another device.
absl::StatusOr<std::vector<HostTensor>> DecodeArguments(const std::shared_ptr<const ReceivedExecute>& request,
                                                        const CompiledProgram& program, const HandleClaim& claim,
                                                        absl::Span<const bool> writable, const ServiceParts& parts,
                                                        const std::string& tenant, ArgumentCopies* copies);

// The bytes that Gather and DecodeArguments copy of them, as far as they are right; the claim's tensors are there.
int64_t CopiedBytes(const ReceivedExecute& received, const CompiledProgram& program, const HandleClaim& claim,
                    const ServiceParts& parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_EXECUTE_ARGUMENTS_H_
