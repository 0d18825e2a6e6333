#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clients/cli/command.h"
#include "clients/cli/explain_text.h"
#include "clients/cli/graph_file.h"
#include "clients/cli/program_drawing.h"
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
  std::string dot;
  if (arguments.Has("dot")) {
    const absl::StatusOr<ExplainedProgram> program = ParseExplainText(*text);
    if (!program.ok()) return console.Fail(program.status());
    dot = DrawProgram(*program);
  }
  if (console.is_json()) {
    google::protobuf::Struct result;
    (*result.mutable_fields())["text"].set_string_value(*text);
    if (arguments.Has("dot")) (*result.mutable_fields())["dot"].set_string_value(dot);
    return console.PrintJson(result);
  }
  if (arguments.Has("dot")) {
    console.out() << dot;
    return kExitOk;
  }
  console.out() << *text << (text->empty() || text->back() == '\n' ? "" : "\n");
  return kExitOk;
}

}  // namespace

Command ExplainCommand() {
  std::vector<FlagSpec> flags = {{.name = "dot", .help = "Draw the program in the language of Graphviz"}};
  for (FlagSpec& flag : ProgramFlags()) flags.push_back(std::move(flag));
  return {.name = "explain",
          .operands = "GRAPH",
          .summary = "Say how the server runs a graph, and why",
          .details = "A drawing: tensordctl explain --dot GRAPH | dot -Tsvg -o program.svg\n",
          .flags = std::move(flags),
          .run = &Explain};
}

}  // namespace tensord::cli
