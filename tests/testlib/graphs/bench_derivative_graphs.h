#ifndef TENSORD_TESTS_TESTLIB_GRAPHS_BENCH_DERIVATIVE_GRAPHS_H_
#define TENSORD_TESTS_TESTLIB_GRAPHS_BENCH_DERIVATIVE_GRAPHS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"

namespace tensord {

// The graphs of which the benchmarks measure the value together with its gradient. Each has one real number as its
// output "loss".

// The sum of squares of a graph's outputs, which are real.
Graph SumOfSquares(const Graph& graph);
// The cross-entropy of the classifier 784-512-512-10 with relu, f32: x [784, batch], wanted probabilities t [10, batch]
// and the weights of three layers in (D13).
Graph ClassifierLossGraph(int64_t batch);
// The sum of prices of European calls by the formula of Black and Scholes, f64[options]: spot, strike, rate,
// volatility, time in (D_black_scholes).
Graph CallPricesGraph(int64_t options);
// Rows of a table f32[columns, rows] at `count` indices, multiplied with others and summed (D09).
Graph PickedRowsGraph(int64_t columns, int64_t rows, int64_t count);
// The sum of squares of h after steps of h = tanh(w h + u x_t), f32: weights w [width, width], u [width, inputs], x
// [inputs, batch, steps] (D_recurrence).
Graph RecurrenceGraph(int64_t width, int64_t inputs, int64_t batch, int64_t steps);
// A function of one factorization of a [size, size], f64, that depends on no sign and no basis: cholesky, qr, eigh,
// svd. The factors are weighted by c [size, size] (D20).
Graph FactorLossGraph(absl::string_view op, int64_t size);

// The value and the gradient with respect to inputs: "loss", then "x.cotangent" for each.
Graph ValueAndGradient(const Graph& loss, const std::vector<std::string>& wrt);

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_GRAPHS_BENCH_DERIVATIVE_GRAPHS_H_
