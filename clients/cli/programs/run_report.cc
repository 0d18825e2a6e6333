#include "clients/cli/programs/run_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/files/tensor_summary.h"
#include "clients/cli/programs/program_text.h"
#include "google/protobuf/struct.pb.h"

namespace tensord::cli {
namespace {

using Fields = google::protobuf::Map<std::string, google::protobuf::Value>;

constexpr int64_t kValuesInJson = 64;
constexpr size_t kShownFingerprint = 12;

double Milliseconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) * 1e3 + static_cast<double>(duration.nanos()) * 1e-6;
}

void AddOutput(const RunReport::Output& output, const client::HostTensor& tensor, Fields* fields) {
  (*fields)["name"].set_string_value(output.name);
  (*fields)["dtype"].set_string_value(std::string(client::DTypeName(tensor.dtype())));
  auto* shape = (*fields)["shape"].mutable_list_value();
  for (int64_t dim : tensor.shape()) shape->add_values()->set_number_value(static_cast<double>(dim));
  if (!output.file.empty()) {
    (*fields)["file"].set_string_value(output.file);
    return;
  }
  *(*fields)["first_values"].mutable_list_value() = FirstValues(tensor, kValuesInJson);
}

int PrintJson(const RunReport& report, Console& console) {
  google::protobuf::Struct result;
  Fields& fields = *result.mutable_fields();
  auto* outputs = fields["outputs"].mutable_list_value();
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    AddOutput(report.outputs[i], report.result.outputs[i],
              outputs->add_values()->mutable_struct_value()->mutable_fields());
  }
  const v1::ExecutionStats& stats = report.stats;
  fields["fingerprint"].set_string_value(report.compiled.program().fingerprint());
  fields["source"].set_string_value(SourceText(report.compiled.source()));
  fields["device"].set_string_value(stats.device());
  fields["compile_ms"].set_number_value(Milliseconds(report.compiled.compile_time()));
  fields["queue_ms"].set_number_value(Milliseconds(stats.queue_time()));
  fields["run_ms"].set_number_value(Milliseconds(stats.run_time()));
  fields["peak_bytes"].set_number_value(static_cast<double>(stats.peak_bytes()));
  if (stats.segments().empty()) return console.PrintJson(result);
  auto* segments = fields["segments"].mutable_list_value();
  for (const v1::SegmentProfile& segment : stats.segments()) {
    Fields& entry = *segments->add_values()->mutable_struct_value()->mutable_fields();
    entry["backend"].set_string_value(segment.backend());
    entry["kernel"].set_string_value(segment.kernel());
    entry["start_ms"].set_number_value(Milliseconds(segment.start()));
    entry["duration_ms"].set_number_value(Milliseconds(segment.duration()));
    auto* nodes = entry["nodes"].mutable_list_value();
    for (const std::string& node : segment.nodes()) nodes->add_values()->set_string_value(node);
  }
  return console.PrintJson(result);
}

}  // namespace

int PrintRunReport(const RunReport& report, Console& console) {
  if (report.has_used_standard_output) return kExitOk;
  if (console.is_json()) return PrintJson(report, console);
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    const client::HostTensor& tensor = report.result.outputs[i];
    const RunReport::Output& output = report.outputs[i];
    console.Print(absl::StrCat(output.name, ": ",
                               output.file.empty()
                                   ? Summarize(tensor)
                                   : absl::StrCat(client::DTypeName(tensor.dtype()),
                                                  client::ShapeToString(tensor.shape()), " to ", output.file),
                               "\n"));
  }
  const v1::ExecutionStats& stats = report.stats;
  const v1::CompileResponse& compiled = report.compiled;
  console.Print(absl::StrCat("program ", compiled.program().fingerprint().substr(0, kShownFingerprint), " on ",
                             stats.device(), ": ",
                             compiled.source() == v1::CompileResponse::SOURCE_COMPILED
                                 ? absl::StrCat("compile ", DurationText(compiled.compile_time()))
                                 : absl::StrCat("compiled before (", SourceText(compiled.source()), ")"),
                             ", queue ", DurationText(stats.queue_time()), ", run ", DurationText(stats.run_time()),
                             ", peak ", stats.peak_bytes(), " bytes\n"));
  for (const v1::SegmentProfile& segment : stats.segments()) {
    console.Print(absl::StrCat("  ", DurationText(segment.start()), " +", DurationText(segment.duration()), " ",
                               segment.backend(), " ", segment.kernel(), " (", absl::StrJoin(segment.nodes(), ", "),
                               ")\n"));
  }
  return kExitOk;
}

}  // namespace tensord::cli
