#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/files/graph_file.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/connection.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

struct DifferentiateValues {
  std::string graph_path;
  std::string output;
  std::optional<std::string> backward;  // the file of the backward pass, if the derivative is to be split
  client::ConnectOptions connection;
  client::DerivativeOptions derivative;
};

absl::StatusOr<client::DerivativeMode> ParseMode(const std::string& mode) {
  if (mode == "grad") return client::DerivativeMode::kGrad;
  if (mode == "jvp") return client::DerivativeMode::kJvp;
  if (mode == "vjp") return client::DerivativeMode::kVjp;
  return absl::InvalidArgumentError(absl::StrCat("flag needs grad, jvp or vjp: --mode=", mode));
}

absl::StatusOr<DifferentiateValues> ParseDifferentiate(const Arguments& arguments) {
  if (arguments.positional().size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("needs exactly one graph file, ", arguments.positional().size(), " given"));
  }
  DifferentiateValues values;
  values.graph_path = arguments.positional().front();
  values.output = arguments.Value("output").value_or("-");
  const absl::StatusOr<GraphFormat> format = GraphFormatOf(values.output);
  if (!format.ok()) return format.status();
  const absl::StatusOr<client::DerivativeMode> mode = ParseMode(arguments.Value("mode").value_or("grad"));
  if (!mode.ok()) return mode.status();
  values.derivative = {.mode = *mode,
                       .wrt = arguments.Values("wrt"),
                       .keep_outputs = arguments.Has("keep-outputs"),
                       .checkpoints = arguments.Values("checkpoints")};
  values.backward = arguments.Value("split");
  if (values.backward.has_value()) {
    const absl::StatusOr<GraphFormat> backward_format = GraphFormatOf(*values.backward);
    if (!backward_format.ok()) return backward_format.status();
    if (values.output == "-" && *values.backward == "-") {
      return absl::InvalidArgumentError("flag needs a file if there is no --output=FILE: --split=-");
    }
  }
  absl::StatusOr<client::ConnectOptions> connection = ParseConnection(arguments, kWorkDeadline);
  if (!connection.ok()) return connection.status();
  values.connection = *std::move(connection);
  return values;
}

int PrintDerivative(const std::string& path, const v1::Graph& graph, Console& console) {
  if (console.is_json()) {
    google::protobuf::Struct result;
    auto& fields = *result.mutable_fields();
    fields["output"].set_string_value(path);
    fields["nodes"].set_number_value(graph.nodes_size());
    for (const v1::GraphInput& input : graph.inputs()) {
      fields["inputs"].mutable_list_value()->add_values()->set_string_value(input.name());
    }
    for (const v1::GraphOutput& output : graph.outputs()) {
      fields["outputs"].mutable_list_value()->add_values()->set_string_value(output.name());
    }
    return console.PrintJson(result);
  }
  console.Print(absl::StrCat(graph.nodes_size(), graph.nodes_size() == 1 ? " node to " : " nodes to ", path, "\n"));
  for (const v1::GraphInput& input : graph.inputs()) console.Print(absl::StrCat("input ", input.name(), "\n"));
  for (const v1::GraphOutput& output : graph.outputs()) console.Print(absl::StrCat("output ", output.name(), "\n"));
  return kExitOk;
}

int WriteDerivative(const std::string& path, const v1::Graph& graph, Console& console) {
  const absl::Status written = WriteGraph(path, graph);
  if (!written.ok()) return console.Fail(written);
  return path == "-" ? kExitOk : PrintDerivative(path, graph, console);
}

int DifferentiateGraph(const Arguments& arguments, Console& console) {
  const absl::StatusOr<DifferentiateValues> values = ParseDifferentiate(arguments);
  if (!values.ok()) return console.Usage("differentiate", values.status().message());
  const absl::StatusOr<v1::Graph> graph = ReadGraph(values->graph_path);
  if (!graph.ok()) return console.Fail(graph.status());
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values->connection);
  if (!client.ok()) return console.Fail(client.status());
  if (values->backward.has_value()) {
    const absl::StatusOr<client::SplitDerivative> passes = (*client)->DifferentiateInTwo(*graph, values->derivative);
    if (!passes.ok()) return console.Fail(passes.status());
    const absl::Status written = WriteGraph(*values->backward, passes->backward);
    if (!written.ok()) return console.Fail(written);
    return WriteDerivative(values->output, passes->forward, console);
  }
  const absl::StatusOr<v1::Graph> derivative = (*client)->Differentiate(*graph, values->derivative);
  if (!derivative.ok()) return console.Fail(derivative.status());
  return WriteDerivative(values->output, *derivative, console);
}

}  // namespace

Command DifferentiateCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "mode",
       .placeholder = "grad|jvp|vjp",
       .help =
           "grad, the default: of one real number. jvp: along tangents, which are inputs. vjp: back from cotangents"},
      {.name = "wrt",
       .placeholder = "NAME",
       .help = "Differentiate with respect to this input; without the flag, to each float or complex one",
       .is_repeatable = true},
      {.name = "keep-outputs", .help = "The graph's own outputs come first"},
      {.name = "checkpoints",
       .placeholder = "VALUE",
       .help = "grad, vjp: keep this value for the backward pass, and compute what is not kept again; inputs are kept",
       .is_repeatable = true},
      {.name = "split",
       .placeholder = "FILE",
       .help = "grad, vjp: write the backward pass to this graph file, and the forward pass, with residuals behind its "
               "outputs, to the other"},
      {.name = "output",
       .placeholder = "FILE",
       .help = "Write the derivative to a graph file; without it, or with \"-\", JSON goes to standard output",
       .letter = 'o'}};
  for (FlagSpec& flag : ConnectionFlags(kWorkDeadline)) flags.push_back(std::move(flag));
  return {.name = "differentiate",
          .operands = "GRAPH",
          .summary = "Write the derivative of a graph, as a graph",
          .details =
              "The inputs are the graph's, then the tangents or cotangents. jvp has a tangent of each output, vjp "
              "and grad a cotangent of each --wrt. Complex cotangents are adjoints.\n",
          .flags = std::move(flags),
          .run = &DifferentiateGraph};
}

}  // namespace tensord::cli
