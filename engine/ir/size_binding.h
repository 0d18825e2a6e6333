#ifndef TENSORD_ENGINE_IR_SIZE_BINDING_H_
#define TENSORD_ENGINE_IR_SIZE_BINDING_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/inference.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

// The sizes that the symbols of a program have in one run, bound by the shapes of its arguments. A value;
// thread-compatible.
class SizeBinding {
 public:
  SizeBinding() = default;

  // Matches arguments with the inputs' types. Refused with ARGUMENT_COUNT, with ARGUMENT_MISMATCH if a dtype, rank or
  // size differs, and with SYMBOL_CONFLICT if one symbol gets two sizes; the message names the argument.
  static absl::StatusOr<SizeBinding> Create(absl::Span<const TensorType* const> inputs,
                                            absl::Span<const ConcreteType> arguments);

  // A size that the run has decided; see run_time_size.h.
  void Bind(absl::string_view symbol, int64_t size) { sizes_.insert_or_assign(std::string(symbol), size); }

  absl::StatusOr<int64_t> Evaluate(const DimExpr& size) const;
  // Sizes put in; refused with DIM_EXPR_OVERFLOW or SHAPE_OVERFLOW.
  absl::StatusOr<ConcreteType> Resolve(const TensorType& type) const;
  // Fails with SHAPE_MISMATCH if the relation does not hold, with both expressions and sizes.
  absl::Status Check(const ShapeGuard& guard) const;

 private:
  absl::flat_hash_map<std::string, int64_t> sizes_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_SIZE_BINDING_H_
