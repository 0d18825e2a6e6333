#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/files/file.h"
#include "clients/cli/files/graph_file.h"
#include "clients/cli/files/npy.h"
#include "clients/cli/programs/program_flags.h"
#include "clients/cli/programs/run_report.h"
#include "clients/cli/programs/run_trace.h"
#include "clients/cli/programs/tensor_files.h"
#include "clients/cli/programs/timed_run.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/short_text.h"
#include "proto/command_line/nearest_name.h"

namespace tensord::cli {
namespace {

// Names of graph values to files.
using Files = std::map<std::string, std::string>;

absl::StatusOr<Files> ParseFiles(const Arguments& arguments, absl::string_view flag) {
  Files files;
  for (const std::string& value : arguments.Values(flag)) {
    absl::StatusOr<std::pair<std::string, std::string>> named = ParseNameAndFile(flag, value);
    if (!named.ok()) return named.status();
    if (!files.insert(*named).second) {
      return absl::InvalidArgumentError(absl::StrCat("name is given twice: --", flag, "=", value));
    }
  }
  return files;
}

// How many things would be written to standard output.
size_t CountOfStandardOutput(const Files& outputs, const std::optional<std::string>& trace) {
  const auto is_standard = [](const auto& named) { return named.second == "-"; };
  return static_cast<size_t>(std::count_if(outputs.begin(), outputs.end(), is_standard)) + (trace == "-" ? 1 : 0);
}

// Refuses files of values that the graph lacks.
template <typename Values>
absl::Status CheckNames(const Files& files, absl::string_view flag, const Values& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name());
  for (const auto& [name, file] : files) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("the graph has no such ", flag, ", but ",
                                                   names.empty() ? "none" : ListText(names), ": --", flag, "=", name,
                                                   "=", file, wire::DidYouMean(name, names)));
  }
  return absl::OkStatus();
}

// Refuses a graph with an input that no file is for.
absl::Status CheckThatAllAreGiven(const Files& files, const v1::Graph& graph) {
  for (const v1::GraphInput& input : graph.inputs()) {
    if (files.count(input.name()) != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("an input of the graph has no value; add --input=", input.name(), "=FILE.npy"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<client::HostTensor>> ReadInputs(const v1::Graph& graph, const Files& files) {
  std::vector<client::HostTensor> tensors;
  for (const v1::GraphInput& input : graph.inputs()) {
    absl::StatusOr<client::HostTensor> tensor = ReadNpy(files.at(input.name()));
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

std::vector<TensorFile> DescribeInputs(const v1::Graph& graph, const Files& files,
                                       const std::vector<client::HostTensor>& tensors) {
  std::vector<TensorFile> described;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = graph.inputs(static_cast<int>(i)).name();
    described.push_back(DescribeTensorFile(absl::StrCat("input ", name), files.at(name), tensors[i]));
  }
  return described;
}

int Run(const Arguments& arguments, Console& console) {
  absl::StatusOr<ProgramFlagValues> values = ParseProgramFlags(arguments);
  if (!values.ok()) return console.Usage("run", values.status().message());
  const std::optional<std::string> trace_path = arguments.Value("trace");
  values->options.profile = arguments.Has("profile") || trace_path.has_value();
  absl::StatusOr<Files> input_files = ParseFiles(arguments, "input");
  if (!input_files.ok()) return console.Usage("run", input_files.status().message());
  absl::StatusOr<Files> output_files = ParseFiles(arguments, "output");
  if (!output_files.ok()) return console.Usage("run", output_files.status().message());

  const size_t standard_outputs = CountOfStandardOutput(*output_files, trace_path);
  if (standard_outputs > 1) return console.Usage("run", "only one thing can be written to standard output");

  absl::StatusOr<v1::Graph> graph = ReadGraph(values->graph_path);
  if (!graph.ok()) return console.Fail(graph.status());
  absl::Status names = CheckNames(*input_files, "input", graph->inputs());
  if (names.ok()) names = CheckNames(*output_files, "output", graph->outputs());
  if (names.ok()) names = CheckThatAllAreGiven(*input_files, *graph);
  if (!names.ok()) return console.Usage("run", names.message());
  absl::StatusOr<std::vector<client::HostTensor>> inputs = ReadInputs(*graph, *input_files);
  if (!inputs.ok()) return console.Fail(inputs.status());

  absl::StatusOr<RunReport> report = CompileAndRun(*values, *graph, *inputs);
  if (!report.ok()) return FailWithTensors(report.status(), DescribeInputs(*graph, *input_files, *inputs), console);
  for (int i = 0; i < graph->outputs_size(); ++i) {
    const auto file = output_files->find(graph->outputs(i).name());
    report->outputs.push_back(
        {.name = graph->outputs(i).name(), .file = file == output_files->end() ? "" : file->second});
    if (file == output_files->end()) continue;
    const absl::Status written = WriteNpy(file->second, report->result.outputs[static_cast<size_t>(i)]);
    if (!written.ok()) return console.Fail(written);
  }
  if (trace_path.has_value()) {
    const absl::StatusOr<std::string> trace = TraceJson(*report);
    const absl::Status written = trace.ok() ? WriteFile(*trace_path, *trace) : trace.status();
    if (!written.ok()) return console.Fail(written);
    // The segments are in the file; they are printed as well only if asked for.
    if (!arguments.Has("profile")) report->stats.clear_segments();
  }
  report->has_used_standard_output = standard_outputs > 0;
  return PrintRunReport(*report, console);
}

}  // namespace

Command RunCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "input", .placeholder = "NAME=FILE", .help = "Value of an input, a .npy file", .is_repeatable = true},
      {.name = "output",
       .placeholder = "NAME=FILE",
       .help =
           "Write an output to a .npy file; others are summarized; \"-\" writes it to standard output and nothing else",
       .is_repeatable = true},
      {.name = "profile", .help = "Say how long each segment took"},
      {.name = "trace",
       .placeholder = "FILE",
       .help = "Write how long everything took, for chrome://tracing and ui.perfetto.dev; \"-\" as above"}};
  for (FlagSpec& flag : ProgramFlags()) flags.push_back(std::move(flag));
  return {.name = "run",
          .operands = "GRAPH",
          .summary = "Evaluate a graph on values from .npy files",
          .details =
              "GRAPH is a tensord.v1.Graph: JSON (.json), text format (.textproto, .txtpb, .pbtxt) or wire "
              "format (.pb, .binpb); \"-\" reads JSON from standard input. Constants' data in JSON is base64.\n"
              "A BF16 result is written with elements \"<V2\"; in NumPy: .view(ml_dtypes.bfloat16).\n",
          .flags = std::move(flags),
          .run = &Run};
}

}  // namespace tensord::cli
