#ifndef TENSORD_PROTO_CODEC_GRAPH_CODEC_H_
#define TENSORD_PROTO_CODEC_GRAPH_CODEC_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_registry.h"
#include "engine/ops/core_ops.h"
#include "proto/codec/limits.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::codec {

// Fails with LIMIT_EXCEEDED if the graph has too many inputs, nodes, outputs, operands or bytes. Allocates nothing.
absl::Status CheckGraphLimits(const v1::Graph& wire, const GraphLimits& limits);

// Decodes a wire graph, trusting nothing: names, references, counts, attributes and constants are checked, and a
// refusal names the node. InferTypes (engine/ir/verifier.h) checks everything that depends on types; the types of
// results are unset. Ops come from the registry. `default_order` is the order of constants that name none.
//
// A field that this build does not know is refused (UNIMPLEMENTED), never ignored: it may change the result.
//
// `still_wanted` is asked every kNodesBetween nodes; its refusal ends the decoding. May be null.
inline constexpr int kNodesBetween = 1024;
absl::StatusOr<Graph> DecodeGraph(const v1::Graph& wire, const OpRegistry& registry, const GraphLimits& limits,
                                  Order default_order, const std::function<absl::Status()>& still_wanted = nullptr);

// Encodes a graph that decodes to an equal one. Nodes with names that are empty, taken or no wire names get new ones,
// so that graphs made by passes can be sent. Refused with INTERNAL if an op has no wire form.
absl::StatusOr<v1::Graph> EncodeGraph(const Graph& graph);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_GRAPH_CODEC_H_
