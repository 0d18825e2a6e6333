#include <memory>

#include "absl/strings/str_cat.h"
#include "clients/cli/files/graph_file.h"
#include "clients/cli/programs/program_flags.h"
#include "clients/cli/shell/command.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

int Validate(const Arguments& arguments, Console& console) {
  absl::StatusOr<ProgramFlagValues> values = ParseProgramFlags(arguments);
  if (!values.ok()) return console.Usage("validate", values.status().message());
  absl::StatusOr<v1::Graph> graph = ReadGraph(values->graph_path);
  if (!graph.ok()) return console.Fail(graph.status());
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values->connection);
  if (!client.ok()) return console.Fail(client.status());
  absl::StatusOr<v1::CompileResponse> compiled = (*client)->Compile(*graph, values->options);
  if (!compiled.ok()) return console.Fail(compiled.status());
  if (console.is_json()) {
    google::protobuf::Struct result;
    (*result.mutable_fields())["valid"].set_bool_value(true);
    (*result.mutable_fields())["fingerprint"].set_string_value(compiled->program().fingerprint());
    return console.PrintJson(result);
  }
  console.Print(absl::StrCat("valid: ", compiled->program().fingerprint(), "\n"));
  return kExitOk;
}

}  // namespace

Command ValidateCommand() {
  return {.name = "validate",
          .operands = "GRAPH",
          .summary = "Ask the server whether it takes a graph, and if not, why",
          .details = "A refusal names its stable reason, and the node and operation that it is about.\n",
          .flags = ProgramFlags(),
          .run = &Validate};
}

}  // namespace tensord::cli
