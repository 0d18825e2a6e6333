#ifndef TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_MESSAGE_H_
#define TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_MESSAGE_H_

#include "engine/runtime/compile/compiled_program.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Encodes a program for the client. Names of inputs are those of the graph that was compiled first.
v1::Program EncodeProgram(const CompiledProgram& program);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_MESSAGE_H_
