#ifndef TENSORD_CLIENTS_CLI_FILES_GRAPH_FILE_H_
#define TENSORD_CLIENTS_CLI_FILES_GRAPH_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/graph_file/graph_file.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::cli {

using wire::GraphFormat;
using wire::GraphFormatOf;
using wire::ParseGraph;

// Returns the graph of a file; errors name the file.
absl::StatusOr<v1::Graph> ReadGraph(const std::string& path);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILES_GRAPH_FILE_H_
