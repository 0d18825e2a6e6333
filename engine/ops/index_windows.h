#ifndef TENSORD_ENGINE_OPS_INDEX_WINDOWS_H_
#define TENSORD_ENGINE_OPS_INDEX_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/op_def.h"
#include "engine/tensor/literal.h"
#include "engine/tensor/shape.h"

namespace tensord {

// The common part of Gather and Scatter. Both move windows of an operand from or to a tensor of windows (Gather's
// result, Scatter's updates), one window for each index vector of a tensor of indices. Every axis of the tensor of
// windows is either a window axis, which follows an axis of the operand, or a batch axis, which follows an axis of the
// indices; both kinds stand in ascending order.

// The names of attributes and operands, for the schema and for refusals.
struct WindowNames {
  absl::string_view window_dims;
  absl::string_view dropped_dims;
  absl::string_view operand_batching_dims;
  absl::string_view indices_batching_dims;
  absl::string_view index_map;
  absl::string_view indices;
  absl::string_view windows;
};
inline constexpr WindowNames kGatherNames = {.window_dims = "offset_dims",
                                             .dropped_dims = "collapsed_slice_dims",
                                             .operand_batching_dims = "operand_batching_dims",
                                             .indices_batching_dims = "start_indices_batching_dims",
                                             .index_map = "start_index_map",
                                             .indices = "start_indices",
                                             .windows = "the result"};
inline constexpr WindowNames kScatterNames = {.window_dims = "update_window_dims",
                                              .dropped_dims = "inserted_window_dims",
                                              .operand_batching_dims = "input_batching_dims",
                                              .indices_batching_dims = "scatter_indices_batching_dims",
                                              .index_map = "scatter_dims_to_operand_dims",
                                              .indices = "scatter_indices",
                                              .windows = "updates"};

struct WindowAxes {
  std::vector<int64_t> window_dims;            // axes of the windows tensor that follow the operand
  std::vector<int64_t> dropped_dims;           // axes of the operand along which windows have size 1 and no axis
  std::vector<int64_t> operand_batching_dims;  // axes of the operand that follow…
  std::vector<int64_t> indices_batching_dims;  // …these of the indices
  std::vector<int64_t> index_map;              // component k of an index vector is a start along axis index_map[k]
  int64_t index_vector_dim = 0;                // of the indices; their rank: index vectors have one component

  static WindowAxes Of(const Attributes& attrs, const WindowNames& names);
  void SetOn(Attributes* attrs, const WindowNames& names) const;

  // Returns the axes of the operand that window_dims follow, in their order.
  std::vector<int64_t> OperandWindowAxes(int64_t operand_rank) const;
  // Returns the axes of the indices other than index_vector_dim.
  std::vector<int64_t> IndicesBatchAxes(int64_t indices_rank) const;
  // Returns the axes of the windows tensor that follow IndicesBatchAxes, in their order.
  std::vector<int64_t> BatchDims(int64_t indices_rank) const;
};

// Refuses axes that do not describe windows of `operand` named by `indices`; requirements on symbols become guards.
// Does not check the sizes of windows.
absl::Status CheckWindowAxes(InferContext& context, const WindowAxes& axes, const WindowNames& names,
                             const TensorType& operand, const TensorType& indices);

// Returns the start of the window that `batch` names, per axis of the operand, as the index vector gives it: possibly
// outside of the operand. `batch` is an index into the batch axes of `indices`.
Shape WindowStart(const WindowAxes& axes, const Literal& indices, absl::Span<const int64_t> batch,
                  int64_t operand_rank);

// The axes when the operand is stored in `operand_order`, the indices in `indices_order` and window axes are those of
// the stored windows tensor in `window_dims`, ascending. Lists that must be sorted are. `windows_order` tells how
// the windows tensor must be stored then.
struct PermutedWindows {
  WindowAxes axes;
  AxisOrder windows_order;
};
PermutedWindows PermuteWindows(const WindowAxes& axes, const AxisOrder& operand_order, const AxisOrder& indices_order,
                               std::vector<int64_t> window_dims);

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_INDEX_WINDOWS_H_
