#ifndef TENSORD_SERVER_RPC_EXECUTE_ARGUMENTS_H_
#define TENSORD_SERVER_RPC_EXECUTE_ARGUMENTS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/exec/exec_program.h"
#include "engine/runtime/run.h"
#include "proto/codec/limits.h"
#include "server/rpc/received_execute.h"

namespace tensord::server {

// The arguments of a request as a program takes them. A tensor in the program's order is borrowed from the request,
// which it keeps alive and which must not be const itself: the run may write over it. One in the other order is copied.
// ARGUMENT_COUNT, what the tensor codec refuses, naming the argument, and UNSUPPORTED_REQUEST for a resident tensor.
absl::StatusOr<std::vector<HostTensor>> DecodeArguments(const std::shared_ptr<const ReceivedExecute>& request,
                                                        const ExecProgram& program, const codec::GraphLimits& limits);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_ARGUMENTS_H_
