#include "clients/cli/files/graph_file.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/files/file.h"

namespace tensord::cli {

absl::StatusOr<v1::Graph> ReadGraph(const std::string& path) {
  absl::StatusOr<GraphFormat> format = GraphFormatOf(path);
  if (!format.ok()) return format.status();
  absl::StatusOr<std::string> contents = ReadFile(path);
  if (!contents.ok()) return contents.status();
  absl::StatusOr<v1::Graph> graph = ParseGraph(*contents, *format);
  if (graph.ok() && graph->ByteSizeLong() == 0) graph = absl::InvalidArgumentError("there is no graph in it");
  if (graph.ok()) return graph;
  return absl::Status(graph.status().code(),
                      absl::StrCat(path == "-" ? "standard input" : path, ": ", graph.status().message()));
}

absl::Status WriteGraph(const std::string& path, const v1::Graph& graph) {
  const absl::StatusOr<GraphFormat> format = GraphFormatOf(path);
  if (!format.ok()) return format.status();
  const absl::StatusOr<std::string> contents = PrintGraph(graph, *format);
  return contents.ok() ? WriteFile(path, *contents) : contents.status();
}

}  // namespace tensord::cli
