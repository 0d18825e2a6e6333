#ifndef TENSORD_SHAPE_H_
#define TENSORD_SHAPE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord::client {

using Shape = std::vector<int64_t>;

// A size in the shape of a lazy tensor that is known only when the graph runs (run_time_sizes.h). Operations that need
// the number refuse it.
inline constexpr int64_t kRunTimeSize = std::numeric_limits<int64_t>::min();

// Returns a size with a name, which the arguments of a call decide: one program serves all sizes. Equal names are one
// size, and sizes of different names are taken to differ. The name is kept for the life of the process.
//
//   const int64_t n = Symbol("n");
//   Tensor x = Tensor::Parameter("x", DType::kF32, {n, 4});
int64_t Symbol(absl::string_view name);
// Returns the name of a symbol, "?" for kRunTimeSize.
std::string SymbolName(int64_t size);

// Tells whether a size is a symbol or kRunTimeSize.
constexpr bool IsRunTimeSize(int64_t size) { return size <= kRunTimeSize + std::numeric_limits<uint32_t>::max(); }
constexpr bool IsSymbol(int64_t size) { return IsRunTimeSize(size) && size != kRunTimeSize; }

// Tells whether two sizes are equal, or kRunTimeSize leaves that to the server.
bool MayBeEqual(int64_t a, int64_t b);

// "[2,3]"; "[]" for rank 0; a symbol's name; "?" for another run-time size.
std::string ShapeToString(absl::Span<const int64_t> shape);

// Most axes of a tensor in memory of the host, as in NumPy. Servers take fewer (limits.rank).
inline constexpr size_t kMostAxes = 64;

// Product of the dimensions. INVALID_ARGUMENT if there are more than kMostAxes, a dimension is negative or a run-time
// size, or the product does not fit into int64, whether or not another dimension is 0.
absl::StatusOr<int64_t> ElementCount(absl::Span<const int64_t> shape);

// Returns the common shape of two operands as NumPy broadcasts: aligned at the last axis, where sizes are equal or one
// of them is 1. kRunTimeSize goes with any other run-time size, which the server checks. INVALID_ARGUMENT names `op`
// and both shapes.
absl::StatusOr<Shape> BroadcastShapes(absl::string_view op, absl::Span<const int64_t> a, absl::Span<const int64_t> b);

bool HasRunTimeSize(absl::Span<const int64_t> shape);

// Tells whether a window of `size` may fit into an axis of size `dim`: a run-time size leaves that to the server.
bool MayFit(int64_t size, int64_t dim);

// Axes in [-rank, rank) as axes in [0, rank), in the order given. INVALID_ARGUMENT if one is out of range or twice.
absl::StatusOr<std::vector<int64_t>> NormalizeAxes(absl::string_view op, absl::Span<const int64_t> axes, int64_t rank);
absl::StatusOr<int64_t> NormalizeAxis(absl::string_view op, int64_t axis, int64_t rank);

}  // namespace tensord::client

#endif  // TENSORD_SHAPE_H_
