#include "server/rpc/programs/program_message.h"

#include "proto/codec/type_codec.h"

namespace tensord::server {

v1::Program EncodeProgram(const CompiledProgram& program) {
  const ExecProgram& exec = program.program();
  v1::Program message;
  message.set_fingerprint(program.fingerprint().ToHex());
  for (const GraphInput& input : exec.inputs) {
    v1::GraphInput* wire = message.add_inputs();
    wire->set_name(input.name);
    *wire->mutable_type() = codec::EncodeType(input.type);
  }
  for (size_t i = 0; i < exec.outputs.size(); ++i) {
    v1::GraphInput* wire = message.add_outputs();
    wire->set_name(exec.outputs[i].name);
    *wire->mutable_type() = codec::EncodeType(exec.wire_outputs[i]);
  }
  message.set_device(program.device());
  message.set_instruction_count(static_cast<int64_t>(exec.instructions.size()));
  message.set_segment_count(program.segment_count());
  if (const auto bytes = program.temporary_bytes()) message.set_temporary_bytes(*bytes);
  return message;
}

}  // namespace tensord::server
