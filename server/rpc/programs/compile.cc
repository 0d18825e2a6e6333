#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "proto/codec/duration_codec.h"
#include "server/rpc/calls/handlers.h"
#include "server/rpc/programs/program_lookup.h"
#include "server/rpc/programs/program_message.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

v1::CompileResponse::Source EncodeSource(ProgramCache::Source source) {
  switch (source) {
    case ProgramCache::Source::kCompiled:
      return v1::CompileResponse::SOURCE_COMPILED;
    case ProgramCache::Source::kJoined:
      return v1::CompileResponse::SOURCE_JOINED;
    case ProgramCache::Source::kDisk:
      return v1::CompileResponse::SOURCE_DISK;
    case ProgramCache::Source::kMemory:
      break;
  }
  return v1::CompileResponse::SOURCE_MEMORY;
}

v1::CompileResponse Encode(const ProgramCache::Found& found, const std::vector<std::string>& input_names) {
  v1::CompileResponse response;
  *response.mutable_program() = EncodeProgram(*found.program);
  // The program may have been compiled for a graph with other names.
  for (int i = 0; i < response.program().inputs_size(); ++i) {
    response.mutable_program()->mutable_inputs(i)->set_name(input_names[static_cast<size_t>(i)]);
  }
  response.set_source(EncodeSource(found.source));
  *response.mutable_compile_time() = codec::EncodeDuration(found.compile_time);
  return response;
}

}  // namespace

void HandleCompile(UnaryCall* call) {
  v1::CompileRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  if (!request.has_graph()) return call->Fail(Refuse(Refusal::kMalformedMessage, "the request has no graph"));

  std::vector<std::string> names;
  for (const v1::GraphInput& input : request.graph().inputs()) names.push_back(input.name());
  CompileProgram(call, request.graph(), request.options(),
                 [call, names = std::move(names)](absl::StatusOr<ProgramOfGraph> program) {
                   if (!program.ok()) return call->Fail(program.status());
                   call->Reply(Encode(program->found, names));
                 });
}

}  // namespace tensord::server
