#ifndef TENSORD_SERVER_RPC_PROGRAM_MESSAGE_H_
#define TENSORD_SERVER_RPC_PROGRAM_MESSAGE_H_

#include "absl/time/time.h"
#include "engine/runtime/compiled_program.h"
#include "google/protobuf/duration.pb.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// What a client is told of a program. Names of inputs are those of the graph that was compiled first.
v1::Program EncodeProgram(const CompiledProgram& program);

google::protobuf::Duration EncodeDuration(absl::Duration duration);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAM_MESSAGE_H_
