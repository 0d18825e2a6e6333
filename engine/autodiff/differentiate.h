#ifndef TENSORD_ENGINE_AUTODIFF_DIFFERENTIATE_H_
#define TENSORD_ENGINE_AUTODIFF_DIFFERENTIATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/derivative_builder.h"
#include "engine/ir/graph.h"

namespace tensord {

// The values are those of tensord.v1.DifferentiateRequest.Mode.
enum class DerivativeMode : uint8_t { kUnspecified = 0, kJvp = 1, kVjp = 2, kGrad = 3 };

struct DerivativeRequest {
  DerivativeMode mode = DerivativeMode::kUnspecified;
  std::vector<std::string> wrt;  // names of inputs; empty: every differentiable one, in order
  bool keep_outputs = false;     // the graph's own outputs come first
  // VJP and GRAD: references to values ("x", "y:1") that the backward pass finds in memory, beside the other results of
  // their nodes, inputs, constants and values whose sizes only the run decides. All others are computed again. Empty:
  // every value is kept.
  std::vector<std::string> checkpoints = {};
  DerivativeBounds bounds = {};  // of each graph on the way
};

// Returns the graph of the derivative, typed, in the vocabulary of the graph, and the same for the same request. The
// graph must have types.
//
// Its inputs are the graph's, then for JVP a tangent for each wrt, for VJP a cotangent for each output of a
// differentiable dtype. Its outputs are those kept, then for JVP the tangents of such outputs, for VJP and GRAD the
// cotangent of each wrt. A value that does not depend on a wrt has the derivative 0. Cotangents are adjoints: for all
// tangents t, Re<ct, JVP(t)> = Re<VJP(ct), t> in the product <a, b> = conj(a) b. GRAD is VJP with the cotangent 1.
//
// Refused with INVALID_ARGUMENT if wrt names something other than an input of a differentiable dtype or one twice, if
// nothing is differentiable, if GRAD does not find one real output of rank 0, and for checkpoints that are no values,
// stand twice or come with JVP; with UNIMPLEMENTED, naming the node and its op, if an op between a wrt and an output
// has no rule; with LIMIT_EXCEEDED past the request's bounds. Takes time in proportion to the nodes that are made;
// stops with the thread's StopSignal.
absl::StatusOr<Graph> Differentiate(const Graph& graph, const DerivativeRequest& request);

// The derivative as two graphs, typed. The forward pass has the graph's inputs, and its outputs with residuals behind
// them. The backward pass has the inputs of the graph that it reads or that have symbolic sizes, the residuals under
// their names as outputs, and the cotangents of VJP; its outputs are the cotangents of each wrt.
struct SplitDerivative {
  Graph forward;
  Graph backward;
};

// Differentiates by VJP or GRAD, keeps the outputs, and splits the derivative. Residuals of sizes that the run decides
// have symbols for them. Refuses as Differentiate does, and JVP with INVALID_ARGUMENT.
absl::StatusOr<SplitDerivative> DifferentiateInTwo(const Graph& graph, const DerivativeRequest& request);

}  // namespace tensord

#endif  // TENSORD_ENGINE_AUTODIFF_DIFFERENTIATE_H_
