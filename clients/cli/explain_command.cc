#include <memory>
#include <string>

#include "clients/cli/command.h"
#include "clients/cli/graph_file.h"
#include "clients/cli/program_flags.h"
#include "clients/cpp/client.h"
#include "google/protobuf/struct.pb.h"

namespace tensord::cli {
namespace {

int Explain(const Arguments& arguments, Console& console) {
  absl::StatusOr<ProgramFlagValues> values = ParseProgramFlags(arguments);
  if (!values.ok()) return console.Usage("explain", values.status().message());
  absl::StatusOr<v1::Graph> graph = ReadGraph(values->graph_path);
  if (!graph.ok()) return console.Fail(graph.status());
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values->connection);
  if (!client.ok()) return console.Fail(client.status());
  absl::StatusOr<std::string> text = (*client)->Explain(*graph, values->options);
  if (!text.ok()) return console.Fail(text.status());
  if (console.is_json()) {
    google::protobuf::Struct result;
    (*result.mutable_fields())["text"].set_string_value(*text);
    return console.PrintJson(result);
  }
  console.out() << *text << (text->empty() || text->back() == '\n' ? "" : "\n");
  return kExitOk;
}

}  // namespace

Command ExplainCommand() {
  return {.name = "explain",
          .operands = "GRAPH",
          .summary = "Say how the server runs a graph, and why",
          .details = "",
          .flags = ProgramFlags(),
          .run = &Explain};
}

}  // namespace tensord::cli
