#ifndef TENSORD_CLIENTS_CLI_FILES_GRAPH_FILE_H_
#define TENSORD_CLIENTS_CLI_FILES_GRAPH_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/graph_file/graph_file.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::cli {

using wire::GraphFormat;
using wire::GraphFormatOf;
using wire::ParseGraph;
using wire::PrintGraph;

// Returns the graph of a file; errors name the file.
absl::StatusOr<v1::Graph> ReadGraph(const std::string& path);

// Replaces a file by a graph, in the format that its name's end says; "-" is JSON to standard output.
absl::Status WriteGraph(const std::string& path, const v1::Graph& graph);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILES_GRAPH_FILE_H_
