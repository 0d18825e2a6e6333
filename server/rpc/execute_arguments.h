#ifndef TENSORD_SERVER_RPC_EXECUTE_ARGUMENTS_H_
#define TENSORD_SERVER_RPC_EXECUTE_ARGUMENTS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/compiled_program.h"
#include "engine/runtime/run.h"
#include "server/rpc/received_execute.h"
#include "server/rpc/service_parts.h"
#include "server/sessions/handle_claim.h"

namespace tensord::server {

// The arguments of a request as a program takes them. A tensor in the program's order is borrowed from the request,
// which it keeps alive and which must not be const itself: the run may write over it. A resident one is read where it
// lies, and written over where `writable` says so, by use of the claim. What is in the other order is copied; `charges`
// gets what copies of resident ones take, to be held while the arguments are. ARGUMENT_COUNT; naming the argument, what
// the tensor codec refuses, what InOtherOrder does, and ARGUMENT_MISMATCH for a tensor on another device.
absl::StatusOr<std::vector<HostTensor>> DecodeArguments(const std::shared_ptr<const ReceivedExecute>& request,
                                                        const CompiledProgram& program, const HandleClaim& claim,
                                                        absl::Span<const bool> writable, const ServiceParts& parts,
                                                        std::vector<MemoryCharge>* charges);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_ARGUMENTS_H_
