#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/files/npy.h"
#include "clients/cli/programs/einsum_graph.h"
#include "clients/cli/programs/program_flags.h"
#include "clients/cli/programs/tensor_files.h"
#include "clients/cli/programs/timed_run.h"
#include "clients/cli/shell/command.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

absl::StatusOr<einsum::v1::Einsum> ParseEinsum(const Arguments& arguments) {
  if (arguments.positional().size() < 2) {
    return absl::InvalidArgumentError("needs an equation and a .npy file for each of its operands");
  }
  const absl::Status equation = CheckEquation(arguments.positional().front());
  if (!equation.ok()) return equation;
  einsum::v1::Einsum einsum;
  einsum.set_equation(WithOutput(arguments.positional().front()));
  const auto optimizer = ParseOptimizer(arguments.Value("optimizer").value_or("auto"));
  if (!optimizer.ok()) return optimizer.status();
  einsum.set_optimizer(*optimizer);
  if (const std::optional<std::string> largest = arguments.Value("largest-intermediate")) {
    int64_t elements = 0;
    if (!absl::SimpleAtoi(*largest, &elements) || elements < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag needs a number of elements: --largest-intermediate=", *largest));
    }
    einsum.set_largest_intermediate(elements);
  }
  if (const std::optional<std::string> name = arguments.Value("algebra")) {
    const absl::StatusOr<v1::Algebra> algebra = ParseAlgebra(*name);
    if (!algebra.ok()) return algebra.status();
    einsum.set_algebra(*algebra);
  }
  if (const std::optional<std::string> text = arguments.Value("steps")) {
    if (arguments.Has("optimizer")) return absl::InvalidArgumentError("--steps and --optimizer exclude each other");
    auto steps = ParseSteps(*text);
    if (!steps.ok()) return steps.status();
    *einsum.mutable_path() = *std::move(steps);
  }
  return einsum;
}

absl::StatusOr<std::vector<client::HostTensor>> ReadOperands(const Arguments& arguments) {
  std::vector<client::HostTensor> operands;
  for (size_t i = 1; i < arguments.positional().size(); ++i) {
    absl::StatusOr<client::HostTensor> operand = ReadNpy(arguments.positional()[i]);
    if (!operand.ok()) return operand.status();
    operands.push_back(*std::move(operand));
  }
  return operands;
}

std::vector<TensorFile> FilesOf(const Arguments& arguments, const std::vector<client::HostTensor>& operands) {
  std::vector<TensorFile> files;
  for (size_t i = 0; i < operands.size(); ++i) {
    files.push_back(DescribeTensorFile(absl::StrCat("operand ", i), arguments.positional()[i + 1], operands[i]));
  }
  return files;
}

int Explain(const ProgramFlagValues& values, const v1::Graph& graph, const std::vector<TensorFile>& files,
            Console& console) {
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values.connection);
  if (!client.ok()) return console.Fail(client.status());
  const absl::StatusOr<std::string> text = (*client)->Explain(graph, values.options);
  if (!text.ok()) return FailWithTensors(text.status(), files, console);
  if (console.is_json()) {
    google::protobuf::Struct result;
    (*result.mutable_fields())["text"].set_string_value(*text);
    return console.PrintJson(result);
  }
  console.Print(absl::StrCat(*text, text->empty() || text->back() == '\n' ? "" : "\n"));
  return kExitOk;
}

// Prints the order in which the server would contract the operands, and its cost.
int PrintPlan(const ProgramFlagValues& values, const v1::Graph& graph, const std::vector<TensorFile>& files,
              Console& console) {
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values.connection);
  if (!client.ok()) return console.Fail(client.status());
  const absl::StatusOr<std::vector<v1::ContractionPlan>> plans = (*client)->PlanContractions(graph, values.options);
  if (!plans.ok()) return FailWithTensors(plans.status(), files, console);
  if (plans->size() != 1)
    return console.Fail(absl::UnimplementedError("the server does not say how it plans an einsum"));
  const v1::ContractionPlan& plan = plans->front();
  if (console.is_json()) return console.PrintJson(plan);
  const std::string path = plan.path().empty() ? "none, nothing is contracted" : StepsText(plan);
  console.Print(
      absl::StrFormat("path                  %s\n"
                      "chosen by             %s\n"
                      "operations            %.4g\n"
                      "largest intermediate  %.4g elements\n",
                      path, plan.optimizer(), plan.flops(), plan.largest_intermediate()));
  return kExitOk;
}

int Einsum(const Arguments& arguments, Console& console) {
  absl::StatusOr<ProgramFlagValues> values = ParseProgramOptions(arguments);
  if (!values.ok()) return console.Usage("einsum", values.status().message());
  values->options.profile = arguments.Has("profile");
  const absl::StatusOr<einsum::v1::Einsum> einsum = ParseEinsum(arguments);
  if (!einsum.ok()) return console.Usage("einsum", einsum.status().message());
  const absl::StatusOr<std::vector<client::HostTensor>> operands = ReadOperands(arguments);
  if (!operands.ok()) return console.Fail(operands.status());
  const v1::Graph graph = EinsumGraph(*einsum, *operands);
  const std::vector<TensorFile> files = FilesOf(arguments, *operands);
  if (arguments.Has("path")) return PrintPlan(*values, graph, files, console);
  if (arguments.Has("explain")) return Explain(*values, graph, files, console);

  absl::StatusOr<RunReport> report = CompileAndRun(*values, graph, *operands);
  if (!report.ok()) return FailWithTensors(report.status(), files, console);
  const std::string file = arguments.Value("output").value_or("");
  report->outputs.push_back({.name = graph.outputs(0).name(), .file = file});
  if (!file.empty()) {
    const absl::Status written = WriteNpy(file, report->result.outputs.front());
    if (!written.ok()) return console.Fail(written);
    report->has_used_standard_output = file == "-";
  }
  return PrintRunReport(*report, console);
}

}  // namespace

Command EinsumCommand() {
  std::vector<FlagSpec> flags = {
      {.name = "output",
       .placeholder = "FILE",
       .help = "Write the result to a .npy file; \"-\" writes it to standard output and nothing else",
       .letter = 'o'},
      {.name = "optimizer",
       .placeholder = "NAME",
       .help = "How the order is found: auto, greedy, optimal, left-to-right"},
      {.name = "largest-intermediate", .placeholder = "N", .help = "Never hold an intermediate of more elements"},
      {.name = "steps",
       .placeholder = "PATH",
       .help = "Contract in this order: '(1, 2), (0, 1)' are positions among the operands that are left, where the "
               "result of a step comes last"},
      {.name = "algebra",
       .placeholder = "NAME",
       .help = "Read sums and products otherwise: max_plus, min_plus, max_times, or_and"},
      {.name = "path", .help = "Say in which order the server would contract, and what that costs, instead"},
      {.name = "explain", .help = "Say how the server would run it, and why, instead"},
      {.name = "profile", .help = "Say how long each segment took"}};
  for (FlagSpec& flag : ProgramFlags()) flags.push_back(std::move(flag));
  return {
      .name = "einsum",
      .operands = "EQUATION FILE…",
      .summary = "Sum products of tensors in .npy files",
      .details =
          "EQUATION is Einstein's notation: \"ij,jk->ik\" multiplies two matrices, one file each. \"...\" stands "
          "for axes without labels, parentheses fix the order of contraction: \"(ij,jk),kl->il\".\nWithout an arrow "
          "the result has the labels that occur once, in the order of the alphabet. Operands of several dtypes are "
          "converted to the one that NumPy's promotion gives.\n",
      .flags = std::move(flags),
      .run = &Einsum};
}

}  // namespace tensord::cli
