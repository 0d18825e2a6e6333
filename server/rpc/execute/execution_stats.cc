#include "server/rpc/execute/execution_stats.h"

#include <string>

#include "proto/codec/duration_codec.h"

namespace tensord::server {
namespace {

v1::SegmentProfile EncodeSegment(absl::string_view backend, const SegmentProfile& segment, const Renaming& renaming) {
  v1::SegmentProfile message;
  message.set_backend(std::string(backend));
  message.set_kernel(segment.kernel);
  for (const std::string& node : segment.nodes) message.add_nodes(renaming.Of(node));
  *message.mutable_start() = codec::EncodeDuration(segment.start);
  *message.mutable_duration() = codec::EncodeDuration(segment.duration);
  return message;
}

}  // namespace

void EncodeStats(const RequestRecord& record, const CompiledProgram& program, const RunOutcome& outcome,
                 const Renaming& renaming, bool with_segments, v1::ExecutionStats* stats) {
  stats->set_device(program.device());
  *stats->mutable_queue_time() = codec::EncodeDuration(outcome.queue_time);
  if (const auto compile = record.stages.Of(Stage::kCompile)) {
    *stats->mutable_compile_time() = codec::EncodeDuration(*compile);
  }
  *stats->mutable_run_time() = codec::EncodeDuration(outcome.run_time);
  stats->set_peak_bytes(outcome.peak_bytes);
  if (!with_segments) return;
  for (const SegmentProfile& segment : outcome.profile) {
    *stats->add_segments() = EncodeSegment(program.backend()->kind(), segment, renaming);
  }
}

}  // namespace tensord::server
