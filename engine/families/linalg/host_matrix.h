#ifndef TENSORD_ENGINE_FAMILIES_LINALG_HOST_MATRIX_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_HOST_MATRIX_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/tensor/literal.h"

namespace tensord {

// A matrix in the arithmetic of the reference: complex F64 whatever the operands' dtype. A value.
class HostMatrix {
 public:
  HostMatrix() = default;
  HostMatrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), values_(static_cast<size_t>(rows * columns)) {}
  static HostMatrix Identity(int64_t rows, int64_t columns);

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  Complex128& operator()(int64_t i, int64_t j) { return values_[static_cast<size_t>(i + j * rows_)]; }
  const Complex128& operator()(int64_t i, int64_t j) const { return values_[static_cast<size_t>(i + j * rows_)]; }

  bool IsFinite() const;
  // Returns the adjoint, the conjugate of the transpose.
  HostMatrix Adjoint() const;
  // Its first columns, or rows.
  HostMatrix Columns(int64_t count) const;
  HostMatrix Rows(int64_t count) const;

 private:
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  std::vector<Complex128> values_;  // column-major
};

HostMatrix Product(const HostMatrix& a, const HostMatrix& b);

// Returns the number of matrices in an operand of such a shape.
int64_t BatchSize(absl::Span<const int64_t> shape);

// One matrix of a batch, read and written; written to a real dtype, only real parts are kept.
HostMatrix ReadMatrix(const Literal& literal, int64_t batch);
void WriteMatrix(const HostMatrix& matrix, int64_t batch, Literal* literal);
// One vector, or scalar, of a batch.
void WriteVector(absl::Span<const Complex128> vector, int64_t batch, Literal* literal);
void WriteVector(absl::Span<const double> vector, int64_t batch, Literal* literal);

// Writes NaN into one matrix's part of a result: the result of a matrix with a NaN or an infinity.
void WriteNaN(int64_t batch, int64_t batch_size, Literal* literal);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_HOST_MATRIX_H_
