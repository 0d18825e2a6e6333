#ifndef TENSORD_ENGINE_OPS_AXIS_ORDER_H_
#define TENSORD_ENGINE_OPS_AXIS_ORDER_H_

#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/op_def.h"

namespace tensord {

inline AxisOrder IdentityOrder(int64_t rank) {
  AxisOrder order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

inline AxisOrder ReversedOrder(int64_t rank) {
  AxisOrder order(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = rank - 1 - i;
  return order;
}

inline AxisOrder NaturalOrder(int64_t rank, bool reversed) {
  return reversed ? ReversedOrder(rank) : IdentityOrder(rank);
}

inline bool IsIdentity(absl::Span<const int64_t> order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

inline AxisOrder Inverse(absl::Span<const int64_t> order) {
  AxisOrder inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

// outer after inner: result[i] = outer[inner[i]].
inline AxisOrder Compose(absl::Span<const int64_t> outer, absl::Span<const int64_t> inner) {
  AxisOrder result(inner.size());
  for (size_t i = 0; i < inner.size(); ++i) result[i] = outer[static_cast<size_t>(inner[i])];
  return result;
}

// Values given per axis of the operand, per axis of the tensor that stores it in `order`.
template <typename Sequence>
Sequence ToStored(const Sequence& values, absl::Span<const int64_t> order) {
  Sequence stored(values);
  for (size_t i = 0; i < values.size(); ++i) stored[static_cast<size_t>(order[i])] = values[i];
  return stored;
}

// Axes of the operand as axes of the tensor that stores it in `order`.
inline std::vector<int64_t> MapAxes(absl::Span<const int64_t> axes, absl::Span<const int64_t> order) {
  std::vector<int64_t> mapped;
  mapped.reserve(axes.size());
  for (int64_t a : axes) mapped.push_back(order[static_cast<size_t>(a)]);
  return mapped;
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_AXIS_ORDER_H_
