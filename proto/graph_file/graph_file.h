#ifndef TENSORD_PROTO_GRAPH_FILE_GRAPH_FILE_H_
#define TENSORD_PROTO_GRAPH_FILE_GRAPH_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::wire {

// Graphs as people keep them in files: for clients and for the server.

enum class GraphFormat { kJson, kText, kBinary };

// Returns the format by the name's end: .json; .textproto, .txtpb or .pbtxt; .pb or .binpb. "-", standard input, is
// JSON.
absl::StatusOr<GraphFormat> GraphFormatOf(absl::string_view path);

// Returns a tensord.v1.Graph in protobuf's JSON (bytes are base64), text format, or wire format. INVALID_ARGUMENT says
// where the text is wrong.
absl::StatusOr<v1::Graph> ParseGraph(const std::string& contents, GraphFormat format);

// Returns the text or bytes that ParseGraph reads back. Fields have the names of the .proto files.
absl::StatusOr<std::string> PrintGraph(const v1::Graph& graph, GraphFormat format);

}  // namespace tensord::wire

#endif  // TENSORD_PROTO_GRAPH_FILE_GRAPH_FILE_H_
