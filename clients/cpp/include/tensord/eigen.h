// Eigen's matrices as tensors, and tensors as maps of Eigen. Needs Eigen 3.3 or later, and is not part of tensord.h.
#ifndef TENSORD_EIGEN_H_
#define TENSORD_EIGEN_H_

#include <Eigen/Core>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// A map of a tensor's elements, whatever their order in memory.
template <typename T>
using EigenMap = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>, Eigen::Unaligned,
                            Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

// Returns a tensor of rank 2 as a matrix, or one of rank 1 as a column, without a copy. Valid while the tensor or a
// copy of it exists. INVALID_ARGUMENT if T is not the dtype, or the rank is another one.
template <typename T>
absl::StatusOr<EigenMap<T>> AsEigen(const HostTensor& tensor) {
  const absl::StatusOr<absl::Span<const T>> values = tensor.Values<T>();
  if (!values.ok()) return values.status();
  const Shape& shape = tensor.shape();
  if (shape.empty() || shape.size() > 2) {
    return absl::InvalidArgumentError("a matrix has one axis or two, the shape is " + ShapeToString(shape));
  }
  const Eigen::Index rows = shape[0], columns = shape.size() == 2 ? shape[1] : 1;
  const bool is_row_major = shape.size() == 2 && tensor.order() == MemoryOrder::kRowMajor;
  // Outer: from column to column; inner: from row to row.
  const Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic> strides(is_row_major ? 1 : rows, is_row_major ? columns : 1);
  return EigenMap<T>(values->data(), rows, columns, strides);
}

// Evaluates a matrix or an expression, and copies it into a tensor: rank 1 for a type that is a vector, else rank 2.
template <typename Derived>
absl::StatusOr<HostTensor> FromEigen(const Eigen::DenseBase<Derived>& matrix) {
  using T = typename Derived::Scalar;
  std::string bytes(static_cast<size_t>(matrix.size()) * sizeof(T), '\0');
  Eigen::Map<Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic>>(reinterpret_cast<T*>(bytes.data()), matrix.rows(),
                                                              matrix.cols()) = matrix.derived().array();
  Shape shape = {matrix.rows(), matrix.cols()};
  if constexpr (Derived::IsVectorAtCompileTime) shape = {matrix.size()};
  return HostTensor::FromBytes(DTypeOf<T>::kValue, std::move(shape), MemoryOrder::kColumnMajor, std::move(bytes));
}

}  // namespace tensord::client

#endif  // TENSORD_EIGEN_H_
