#ifndef TENSORD_ENGINE_TENSOR_LITERAL_H_
#define TENSORD_ENGINE_TENSOR_LITERAL_H_

#include <cstring>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/tensor/shape.h"

namespace tensord {

// A tensor in host memory, dense and column-major, that owns its bytes. Shared as shared_ptr<const Literal> once it
// is part of a graph. Thread-compatible.
class Literal {
 public:
  Literal() = default;
  // Zeroed. Refused with SHAPE_OVERFLOW if the bytes do not fit into 64 bits, or a size is negative.
  static absl::StatusOr<Literal> Create(ConcreteType type);
  // Makes a literal from column-major bytes; refused with DATA_LENGTH_MISMATCH if they are not exactly the type's.
  static absl::StatusOr<Literal> FromBytes(ConcreteType type, absl::string_view bytes);

  template <Element T>
  static Literal Scalar(T value) {
    Literal literal;
    literal.type_.dtype = kDTypeOf<T>;
    literal.bytes_.assign(reinterpret_cast<const char*>(&value), sizeof(T));
    return literal;
  }

  const ConcreteType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t num_elements() const { return type_.num_elements(); }
  absl::string_view bytes() const { return bytes_; }
  char* mutable_data() { return bytes_.data(); }

  // T must be the C++ type of dtype().
  template <Element T>
  absl::Span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  template <Element T>
  absl::Span<T> mutable_values() {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

  // The same bytes under another shape with the same number of elements.
  Literal WithShape(Shape shape) const;

  friend bool operator==(const Literal& a, const Literal& b) { return a.type_ == b.type_ && a.bytes_ == b.bytes_; }

 private:
  ConcreteType type_;
  std::string bytes_;  // a string's heap block is aligned for every element type
};

using LiteralPtr = std::shared_ptr<const Literal>;

}  // namespace tensord

#endif  // TENSORD_ENGINE_TENSOR_LITERAL_H_
