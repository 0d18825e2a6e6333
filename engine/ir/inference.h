#ifndef TENSORD_ENGINE_IR_INFERENCE_H_
#define TENSORD_ENGINE_IR_INFERENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/attribute.h"
#include "engine/tensor/run_time_size.h"
#include "engine/tensor/tensor_type.h"

namespace tensord {

using ResultTypes = absl::InlinedVector<TensorType, 1>;

// A relation between sizes that only a run can decide. Checked before the first kernel; if it depends on a size that
// the run itself decides, before the first kernel that runs after that size is known.
struct ShapeGuard {
  enum class Kind : uint8_t {
    kEqual,       // lhs == rhs
    kEqualOrOne,  // lhs == rhs or lhs == 1
    kAtMost,      // lhs <= rhs
  };
  Kind kind = Kind::kEqual;
  DimExpr lhs;
  DimExpr rhs;
  std::string what;   // "sizes of axis 1 differ"
  int32_t node = -1;  // index of the node that asks for it
};

// The most atoms of size expressions that inferring one graph may keep and read, so that a small graph cannot make many
// large expressions: some hundred megabytes.
inline constexpr int64_t kMaxExpressionParts = 1'000'000;

// The highest rank of any value of a graph. A product of two values has the ranks of both: without a bound some dozen
// nodes make a shape that no memory holds.
inline constexpr int64_t kMaxRank = 64;

// The view of a shape rule, and its means to state requirements. A requirement on known sizes is decided at once; one
// that depends on symbols becomes a guard. Lives for the inference of one node.
class InferContext {
 public:
  InferContext(const Attributes& attrs, absl::Span<const TensorType* const> operands, int32_t node,
               absl::string_view node_name, std::vector<ShapeGuard>* guards, RunTimeBounds* bounds)
      : attrs_(attrs), operands_(operands), node_(node), node_name_(node_name), guards_(guards), bounds_(bounds) {}

  const Attributes& attrs() const { return attrs_; }
  size_t num_operands() const { return operands_.size(); }
  const TensorType& operand(size_t i) const { return *operands_[i]; }

  // Parts of the expressions that this node's guards keep and its attributes were resolved with.
  int64_t expression_parts() const { return expression_parts_; }

  // Refused with SHAPE_MISMATCH, "<what>: <a> and <b>".
  absl::Status RequireEqual(const Dim& a, const Dim& b, absl::string_view what);
  absl::Status RequireEqualOrOne(const Dim& a, const Dim& b, absl::string_view what);
  absl::Status RequireAtMost(const Dim& a, const Dim& b, absl::string_view what);
  // Ranks and all sizes; `what` names the two: "lhs and rhs".
  absl::Status RequireSameShape(const TensorType& a, const TensorType& b, absl::string_view what);

  // Returns a size expression of the node's attributes with the sizes of the operands put in.
  absl::StatusOr<DimExpr> Resolve(const DimExpr& expr);

  // Returns a size of the results that this node's run decides, at most `limit`; each call makes another one. The
  // expansion of the node must decide as many, or results with types that tell them apart.
  Dim RunTimeSize(const Dim& limit);

 private:
  absl::Status CountParts(int64_t parts);
  absl::Status Require(ShapeGuard::Kind kind, const Dim& a, const Dim& b, absl::string_view what);

  const Attributes& attrs_;
  absl::Span<const TensorType* const> operands_;
  const int32_t node_;
  const absl::string_view node_name_;
  std::vector<ShapeGuard>* const guards_;
  RunTimeBounds* const bounds_;
  int64_t expression_parts_ = 0;
  size_t run_time_sizes_ = 0;
};

// Fails with LIMIT_EXCEEDED if the parts are more than kMaxExpressionParts.
absl::Status CheckExpressionParts(int64_t parts);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_INFERENCE_H_
