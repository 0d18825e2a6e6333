#ifndef TENSORD_ENGINE_TENSOR_TENSOR_TYPE_H_
#define TENSORD_ENGINE_TENSOR_TENSOR_TYPE_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "engine/base/copy_on_write.h"
#include "engine/tensor/dim_expr.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace tensord {

// The knowledge of a size when a graph is compiled.
enum class Extent : uint8_t {
  kExact,       // an expression over symbols that the arguments' shapes bind
  kUpperBound,  // only the run decides, and it is at most `bound`
  kUnknown,     // only the run decides
};

// The size of an axis. A size that the run decides is an expression too, over the symbols of run_time_size.h, so that
// two axes of one such size compare equal; a bound is never taken for a size.
struct Dim {
  DimExpr size;
  Extent extent = Extent::kExact;  // follows from the size
  CopyOnWrite<DimExpr> bound;      // kUpperBound

  Dim() = default;
  Dim(DimExpr s) : size(std::move(s)) {}  // NOLINT: an expression is an exact size
  Dim(int64_t s) : size(s) {}             // NOLINT: so is a number
  bool is_static() const { return extent == Extent::kExact && size.is_constant(); }
  friend bool operator==(const Dim& a, const Dim& b) { return a.size == b.size; }
};

using SymbolicShape = absl::InlinedVector<Dim, 3>;

// Static type of a graph value: the dtype and the rank are known, a size may be symbolic.
struct TensorType {
  DType dtype = DType::kInvalid;
  SymbolicShape shape;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  bool is_static() const {
    for (const Dim& d : shape) {
      if (!d.is_static()) return false;
    }
    return true;
  }
  friend bool operator==(const TensorType& a, const TensorType& b) = default;
};

TensorType ToTensorType(const ConcreteType& type);
// Needs is_static().
ConcreteType ToConcreteType(const TensorType& type);

// "f32[n,3]"; a size that the run decides comes with its bound: "?y<=n".
std::string ToString(const Dim& dim);
std::string ToString(const TensorType& type);

}  // namespace tensord

#endif  // TENSORD_ENGINE_TENSOR_TENSOR_TYPE_H_
