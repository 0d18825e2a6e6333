#ifndef TENSORD_ENGINE_TENSOR_DIM_EXPR_H_
#define TENSORD_ENGINE_TENSOR_DIM_EXPR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/copy_on_write.h"

namespace tensord {

class DimExpr;

// A part of a size expression besides numbers: a symbol, the size of an operand's axis (in a node's attributes only),
// or an operation that does not distribute over sums.
struct DimAtom {
  enum class Kind : uint8_t { kSymbol, kOperandAxis, kFloorDivide, kMinimum, kMaximum };

  Kind kind = Kind::kSymbol;
  std::string symbol;         // kSymbol
  int64_t operand = 0;        // kOperandAxis
  int64_t axis = 0;           // kOperandAxis
  std::vector<DimExpr> args;  // the others: two

  static int Compare(const DimAtom& a, const DimAtom& b);
};

// coefficient × product of atoms; atoms ascending, at least one.
struct DimTerm {
  int64_t coefficient = 0;
  std::vector<DimAtom> atoms;
};

// A size as an expression over symbols, kept as a normalised sum of products: expressions that are equal as polynomials
// over their atoms compare equal, however they were written. A value; thread-compatible.
//
// Arithmetic is refused with DIM_EXPR_OVERFLOW if a coefficient overflows 64 bits or a divisor is the constant 0, and
// with DIM_EXPR_INVALID if the expression grows past kMaxTerms, kMaxDepth or kMaxParts.
class DimExpr {
 public:
  static constexpr int kMaxTerms = 256;
  static constexpr int kMaxDepth = 32;
  // Sizes put into sizes multiply: without this bound an expression of legal depth could have any length.
  static constexpr int64_t kMaxParts = 2048;

  DimExpr() = default;
  DimExpr(int64_t constant) : constant_(constant) {}  // NOLINT: a number is a size

  static DimExpr Symbol(absl::string_view name);
  static DimExpr OperandAxis(int64_t operand, int64_t axis);
  // Returns a term of another expression.
  static DimExpr OfTerm(DimTerm term);

  static absl::StatusOr<DimExpr> Add(const DimExpr& a, const DimExpr& b);
  static absl::StatusOr<DimExpr> Subtract(const DimExpr& a, const DimExpr& b);
  static absl::StatusOr<DimExpr> Multiply(const DimExpr& a, const DimExpr& b);
  static absl::StatusOr<DimExpr> FloorDivide(const DimExpr& a, const DimExpr& b);
  static absl::StatusOr<DimExpr> Minimum(const DimExpr& a, const DimExpr& b);
  static absl::StatusOr<DimExpr> Maximum(const DimExpr& a, const DimExpr& b);

  bool is_constant() const { return !terms_.is_set(); }
  bool is(int64_t value) const { return is_constant() && constant_ == value; }
  // Returns the number, where the expression is one; the number that is added otherwise.
  int64_t constant() const { return constant_; }
  const std::vector<DimTerm>& terms() const { return *terms_; }
  // Returns the number of atoms, those of nested expressions included: the cost to keep the expression and to work with
  // it.
  int64_t num_parts() const { return is_constant() ? 0 : CountParts(); }
  // Returns the name where the expression is one bare symbol.
  std::optional<absl::string_view> as_symbol() const;

  using AtomValue = std::function<absl::StatusOr<int64_t>(const DimAtom&)>;
  // Returns the size for given values of symbols and operand axes; `value` is asked for those two kinds only. Refused
  // if an intermediate overflows, a divisor is zero or the result is negative.
  absl::StatusOr<int64_t> Evaluate(const AtomValue& value) const;

  // Tells whether some sizes of its symbols make it negative or divide by zero; also true if that is not plain to see.
  bool may_be_refused() const;

  using AtomExpr = std::function<absl::StatusOr<DimExpr>(const DimAtom&)>;
  // Returns the expression with every symbol and operand axis replaced.
  absl::StatusOr<DimExpr> Substitute(const AtomExpr& replacement) const;

  // Calls `visit` for every symbol and operand axis, nested ones included.
  void ForEachLeaf(const std::function<void(const DimAtom&)>& visit) const;

  // "2*n*m + k + 3"; operand axes as "dim(0,1)", the rest as "floordiv(a, b)", "min(a, b)", "max(a, b)".
  std::string ToString() const;

  static int Compare(const DimExpr& a, const DimExpr& b);
  friend bool operator==(const DimExpr& a, const DimExpr& b) {
    return a.constant_ == b.constant_ && (a.terms_.IsSameAs(b.terms_) || Compare(a, b) == 0);
  }

 private:
  static DimExpr OfAtom(DimAtom atom);
  static absl::StatusOr<DimExpr> OfOperation(DimAtom::Kind kind, const DimExpr& a, const DimExpr& b);
  // Returns the sum of the number and the terms, which may stand in any order and repeat.
  static absl::StatusOr<DimExpr> Normalised(int64_t constant, std::vector<DimTerm> terms);
  int64_t CountParts() const;
  int Depth() const;
  absl::StatusOr<int64_t> EvaluateSigned(const AtomValue& value) const;

  int64_t constant_ = 0;
  // Descending by atoms, no zero coefficient, no two with the same atoms; set where there are any.
  CopyOnWrite<std::vector<DimTerm>> terms_;
};

// Reads the form that ToString prints. Symbols are [A-Za-z_][A-Za-z0-9_.]* other than dim, floordiv, min and max; with
// `run_time_symbols` also those of run_time_size.h.
absl::StatusOr<DimExpr> ParseDimExpr(absl::string_view text, bool run_time_symbols = false);

}  // namespace tensord

#endif  // TENSORD_ENGINE_TENSOR_DIM_EXPR_H_
