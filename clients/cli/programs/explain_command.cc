#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/files/graph_file.h"
#include "clients/cli/programs/explain_text.h"
#include "clients/cli/programs/program_drawing.h"
#include "clients/cli/programs/program_flags.h"
#include "clients/cli/shell/command.h"
#include "google/protobuf/struct.pb.h"
#include "tensord/client.h"
#include "tensord/messages.h"

namespace tensord::cli {
namespace {

// Returns true for four or more digits of a fingerprint, unless they are the name of a file.
bool NamesProgram(const std::string& operand) {
  constexpr size_t kLeastDigits = 4;
  return operand.size() >= kLeastDigits && std::all_of(operand.begin(), operand.end(), absl::ascii_isxdigit) &&
         access(operand.c_str(), F_OK) != 0;
}

absl::StatusOr<std::string> AskFor(const ProgramFlagValues& values) {
  const bool is_program = NamesProgram(values.graph_path);
  v1::Graph graph;
  if (!is_program) {
    absl::StatusOr<v1::Graph> read = ReadGraph(values.graph_path);
    if (!read.ok()) return read.status();
    graph = *std::move(read);
  }
  absl::StatusOr<std::unique_ptr<client::Client>> client = client::Client::Connect(values.connection);
  if (!client.ok()) return client.status();
  if (is_program) return (*client)->Explain(absl::AsciiStrToLower(values.graph_path));
  return (*client)->Explain(graph, values.options);
}

int Explain(const Arguments& arguments, Console& console) {
  absl::StatusOr<ProgramFlagValues> values = ParseProgramFlags(arguments);
  if (!values.ok()) return console.Usage("explain", values.status().message());
  absl::StatusOr<std::string> text = AskFor(*values);
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
  console.Print(absl::StrCat(*text, text->empty() || text->back() == '\n' ? "" : "\n"));
  return kExitOk;
}

}  // namespace

Command ExplainCommand() {
  std::vector<FlagSpec> flags = {{.name = "dot", .help = "Draw the program in the language of Graphviz"}};
  for (FlagSpec& flag : ProgramFlags()) flags.push_back(std::move(flag));
  return {.name = "explain",
          .operands = "GRAPH|FINGERPRINT",
          .summary = "Say how the server runs a graph or a program that it has, and why",
          .details =
              "A program of the server is named by its fingerprint, or, for callers with the role admin, the "
              "first digits of that, as logs have them.\n"
              "A drawing: tensordctl explain --dot GRAPH | dot -Tsvg -o program.svg\n",
          .flags = std::move(flags),
          .run = &Explain};
}

}  // namespace tensord::cli
