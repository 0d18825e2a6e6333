#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "clients/cli/files/graph_file.h"
#include "clients/cli/programs/program_flags.h"
#include "clients/cli/programs/program_text.h"
#include "clients/cli/shell/command.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

int Compile(const Arguments& arguments, Console& console) {
  absl::StatusOr<ProgramFlagValues> values = ParseProgramFlags(arguments);
  if (!values.ok()) return console.Usage("compile", values.status().message());
  absl::StatusOr<v1::Graph> graph = ReadGraph(values->graph_path);
  if (!graph.ok()) return console.Fail(graph.status());
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values->connection);
  if (!client.ok()) return console.Fail(client.status());
  absl::StatusOr<v1::CompileResponse> compiled = (*client)->Compile(*graph, values->options);
  if (!compiled.ok()) return console.Fail(compiled.status());
  if (console.is_json()) return console.PrintJson(*compiled);

  const v1::Program& program = compiled->program();
  console.Print(absl::StrCat("fingerprint: ", program.fingerprint(), "\nsource: ", SourceText(compiled->source()), ", ",
                             DurationText(compiled->compile_time()), "\ndevice: ", program.device(), "\n"));
  for (const v1::GraphInput& input : program.inputs()) {
    console.Print(absl::StrCat("input ", input.name(), ": ", TypeText(input.type()), "\n"));
  }
  for (const v1::GraphInput& output : program.outputs()) {
    console.Print(absl::StrCat("output ", output.name(), ": ", TypeText(output.type()), "\n"));
  }
  console.out() << "instructions: " << program.instruction_count() << " in " << program.segment_count()
                << " segments\n";
  if (program.has_temporary_bytes()) {
    console.out() << "temporary memory: " << program.temporary_bytes() << " bytes\n";
  }
  return kExitOk;
}

}  // namespace

Command CompileCommand() {
  return {.name = "compile",
          .operands = "GRAPH",
          .summary = "Compile a graph, and show the program",
          .details = "",
          .flags = ProgramFlags(),
          .run = &Compile};
}

}  // namespace tensord::cli
