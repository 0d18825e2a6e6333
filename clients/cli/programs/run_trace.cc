#include "clients/cli/programs/run_trace.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cpp/wire/duration.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace tensord::cli {
namespace {

using client::ToAbslDuration;
using google::protobuf::Struct;

constexpr int kClient = 1, kServer = 2;          // processes
constexpr int kCalls = 1;                        // threads of the client
constexpr int kServerPhases = 1, kSegments = 2;  // threads of the server

class Trace {
 public:
  Trace() { (*trace_.mutable_fields())["displayTimeUnit"].set_string_value("ms"); }

  // Returns the event's arguments.
  Struct* AddEvent(int process, int thread, absl::string_view name, absl::Duration start, absl::Duration duration) {
    Struct* const event = Add("X", process, thread, name);
    auto& fields = *event->mutable_fields();
    fields["ts"].set_number_value(absl::ToDoubleMicroseconds(start));
    fields["dur"].set_number_value(absl::ToDoubleMicroseconds(duration));
    return fields["args"].mutable_struct_value();
  }

  void NameProcess(int process, absl::string_view name) { AddName("process_name", process, 0, name); }
  void NameThread(int process, int thread, absl::string_view name) { AddName("thread_name", process, thread, name); }

  absl::StatusOr<std::string> Json() const {
    std::string json;
    const auto status = google::protobuf::util::MessageToJsonString(trace_, &json);
    if (!status.ok()) return absl::InternalError("the trace cannot be written as JSON");
    return json;
  }

 private:
  Struct* Add(absl::string_view phase, int process, int thread, absl::string_view name) {
    auto* const events = (*trace_.mutable_fields())["traceEvents"].mutable_list_value();
    Struct* const event = events->add_values()->mutable_struct_value();
    auto& fields = *event->mutable_fields();
    fields["ph"].set_string_value(std::string(phase));
    fields["pid"].set_number_value(process);
    fields["tid"].set_number_value(thread);
    fields["name"].set_string_value(std::string(name));
    return event;
  }

  void AddName(absl::string_view what, int process, int thread, absl::string_view name) {
    Struct* const event = Add("M", process, thread, what);
    auto* const arguments = (*event->mutable_fields())["args"].mutable_struct_value();
    (*arguments->mutable_fields())["name"].set_string_value(std::string(name));
  }

  Struct trace_;
};

// Returns the begin of a part that took `inner`, in the middle of a call; the call's begin if clocks disagree.
absl::Duration Centered(const RunReport::Call& call, absl::Duration inner) {
  return call.start + std::max(absl::ZeroDuration(), (call.duration - inner) / 2);
}

void AddSegment(const v1::SegmentProfile& segment, absl::Duration run_start, Trace* trace) {
  // "dot_general" of "dot_general (f32[2,3], f32[3]) -> f32[2]".
  const std::string name = segment.kernel().substr(0, segment.kernel().find(" ("));
  Struct* const arguments = trace->AddEvent(kServer, kSegments, name, run_start + ToAbslDuration(segment.start()),
                                            ToAbslDuration(segment.duration()));
  auto& fields = *arguments->mutable_fields();
  fields["backend"].set_string_value(segment.backend());
  fields["kernel"].set_string_value(segment.kernel());
  auto* const nodes = fields["nodes"].mutable_list_value();
  for (const std::string& node : segment.nodes()) nodes->add_values()->set_string_value(node);
}

}  // namespace

absl::StatusOr<std::string> TraceJson(const RunReport& report) {
  Trace trace;
  const v1::ExecutionStats& stats = report.stats;
  trace.NameProcess(kClient, "tensordctl");
  trace.NameThread(kClient, kCalls, "calls");
  trace.NameProcess(kServer, absl::StrCat("tensord, ", stats.device()));
  trace.NameThread(kServer, kServerPhases, "phases");
  trace.NameThread(kServer, kSegments, "segments");

  for (const RunReport::Call& call : report.calls) {
    trace.AddEvent(kClient, kCalls, call.name, call.start, call.duration);
    if (call.name == "compile" && report.compiled.source() != v1::CompileResponse::SOURCE_MEMORY) {
      const absl::Duration compile = ToAbslDuration(report.compiled.compile_time());
      trace.AddEvent(kServer, kServerPhases, "compile", Centered(call, compile), compile);
    }
  }
  if (report.calls.empty()) return trace.Json();
  const absl::Duration compile = ToAbslDuration(stats.compile_time());  // where execute sent the graph once more
  const absl::Duration queue = ToAbslDuration(stats.queue_time());
  const absl::Duration run = ToAbslDuration(stats.run_time());
  const absl::Duration server_start = Centered(report.calls.back(), compile + queue + run);
  if (compile > absl::ZeroDuration()) {
    trace.AddEvent(kServer, kServerPhases, "compile", server_start, compile);
  }
  trace.AddEvent(kServer, kServerPhases, "queue", server_start + compile, queue);
  const absl::Duration run_start = server_start + compile + queue;
  Struct* const arguments = trace.AddEvent(kServer, kServerPhases, "run", run_start, run);
  (*arguments->mutable_fields())["peak_bytes"].set_number_value(static_cast<double>(stats.peak_bytes()));
  for (const v1::SegmentProfile& segment : stats.segments()) AddSegment(segment, run_start, &trace);
  return trace.Json();
}

}  // namespace tensord::cli
