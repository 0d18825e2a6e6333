#include "engine/families/linalg/host_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tensord {
namespace {

template <typename T>
T Rounded(Complex128 z) {
  if constexpr (ComplexElement<T>) {
    return T(static_cast<typename T::value_type>(z.real()), static_cast<typename T::value_type>(z.imag()));
  } else {
    return static_cast<T>(z.real());
  }
}

// Calls visitor(TypeTag<T>{}) with the C++ type of one of kFieldDTypes.
template <typename Visitor>
void VisitField(DType dtype, const Visitor& visitor) {
  switch (dtype) {
    case DType::kF32:
      return visitor(TypeTag<float>{});
    case DType::kC64:
      return visitor(TypeTag<Complex64>{});
    case DType::kC128:
      return visitor(TypeTag<Complex128>{});
    default:
      return visitor(TypeTag<double>{});
  }
}

}  // namespace

HostMatrix HostMatrix::Identity(int64_t rows, int64_t columns) {
  HostMatrix identity(rows, columns);
  for (int64_t i = 0; i < std::min(rows, columns); ++i) identity(i, i) = 1;
  return identity;
}

bool HostMatrix::IsFinite() const {
  return std::all_of(values_.begin(), values_.end(),
                     [](Complex128 z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); });
}

HostMatrix HostMatrix::Adjoint() const {
  HostMatrix adjoint(columns_, rows_);
  for (int64_t j = 0; j < columns_; ++j) {
    for (int64_t i = 0; i < rows_; ++i) adjoint(j, i) = std::conj((*this)(i, j));
  }
  return adjoint;
}

HostMatrix HostMatrix::Columns(int64_t count) const {
  HostMatrix part(rows_, count);
  std::copy_n(values_.begin(), part.values_.size(), part.values_.begin());
  return part;
}

HostMatrix HostMatrix::Rows(int64_t count) const {
  HostMatrix part(count, columns_);
  for (int64_t j = 0; j < columns_; ++j) {
    for (int64_t i = 0; i < count; ++i) part(i, j) = (*this)(i, j);
  }
  return part;
}

HostMatrix Product(const HostMatrix& a, const HostMatrix& b) {
  HostMatrix product(a.rows(), b.columns());
  for (int64_t j = 0; j < b.columns(); ++j) {
    for (int64_t k = 0; k < a.columns(); ++k) {
      for (int64_t i = 0; i < a.rows(); ++i) product(i, j) += a(i, k) * b(k, j);
    }
  }
  return product;
}

int64_t BatchSize(absl::Span<const int64_t> shape) {
  int64_t size = 1;
  for (int64_t d : shape.subspan(2)) size *= d;
  return size;
}

HostMatrix ReadMatrix(const Literal& literal, int64_t batch) {
  HostMatrix matrix(literal.shape()[0], literal.shape()[1]);
  VisitField(literal.dtype(), [&]<typename T>(TypeTag<T>) {
    const T* next = literal.values<T>().data() + batch * matrix.rows() * matrix.columns();
    for (int64_t j = 0; j < matrix.columns(); ++j) {
      for (int64_t i = 0; i < matrix.rows(); ++i) matrix(i, j) = Complex128(*next++);
    }
  });
  return matrix;
}

void WriteMatrix(const HostMatrix& matrix, int64_t batch, Literal* literal) {
  VisitField(literal->dtype(), [&]<typename T>(TypeTag<T>) {
    T* next = literal->mutable_values<T>().data() + batch * matrix.rows() * matrix.columns();
    for (int64_t j = 0; j < matrix.columns(); ++j) {
      for (int64_t i = 0; i < matrix.rows(); ++i) *next++ = Rounded<T>(matrix(i, j));
    }
  });
}

void WriteVector(absl::Span<const Complex128> vector, int64_t batch, Literal* literal) {
  VisitField(literal->dtype(), [&]<typename T>(TypeTag<T>) {
    T* const first = literal->mutable_values<T>().data() + batch * static_cast<int64_t>(vector.size());
    std::transform(vector.begin(), vector.end(), first, &Rounded<T>);
  });
}

void WriteVector(absl::Span<const double> vector, int64_t batch, Literal* literal) {
  WriteVector(std::vector<Complex128>(vector.begin(), vector.end()), batch, literal);
}

void WriteNaN(int64_t batch, int64_t batch_size, Literal* literal) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const bool is_complex = kComplexes.Contains(literal->dtype());
  const int64_t count = literal->num_elements() / batch_size;
  WriteVector(std::vector<Complex128>(static_cast<size_t>(count), Complex128(kNaN, is_complex ? kNaN : 0)), batch,
              literal);
}

}  // namespace tensord
