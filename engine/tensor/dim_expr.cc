#include "engine/tensor/dim_expr.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord {
namespace {

absl::Status Overflow() {
  return Refuse(Refusal::kDimExprOverflow, "a size expression overflows 64 bits; use smaller sizes");
}

absl::Status TooManyParts() {
  return Refuse(Refusal::kDimExprInvalid,
                absl::StrCat("a size expression has more than ", DimExpr::kMaxParts, " parts"));
}

int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

int CompareInt(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

int CompareAtoms(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b) {
  if (a.size() != b.size()) return CompareInt(static_cast<int64_t>(a.size()), static_cast<int64_t>(b.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    if (const int c = DimAtom::Compare(a[i], b[i]); c != 0) return c;
  }
  return 0;
}

}  // namespace

int DimAtom::Compare(const DimAtom& a, const DimAtom& b) {
  if (a.kind != b.kind) return CompareInt(static_cast<int>(a.kind), static_cast<int>(b.kind));
  if (const int c = a.symbol.compare(b.symbol); c != 0) return c;
  if (a.operand != b.operand) return CompareInt(a.operand, b.operand);
  if (a.axis != b.axis) return CompareInt(a.axis, b.axis);
  for (size_t i = 0; i < std::min(a.args.size(), b.args.size()); ++i) {
    if (const int c = DimExpr::Compare(a.args[i], b.args[i]); c != 0) return c;
  }
  return CompareInt(static_cast<int64_t>(a.args.size()), static_cast<int64_t>(b.args.size()));
}

int DimExpr::Compare(const DimExpr& a, const DimExpr& b) {
  const std::vector<DimTerm>&s = a.terms(), &t = b.terms();
  if (s.size() != t.size()) return CompareInt(static_cast<int64_t>(s.size()), static_cast<int64_t>(t.size()));
  for (size_t i = 0; i < s.size() && &s != &t; ++i) {
    if (const int c = CompareAtoms(s[i].atoms, t[i].atoms); c != 0) return c;
    if (const int c = CompareInt(s[i].coefficient, t[i].coefficient); c != 0) return c;
  }
  return CompareInt(a.constant_, b.constant_);
}

DimExpr DimExpr::OfAtom(DimAtom atom) {
  DimTerm term{.coefficient = 1, .atoms = {}};
  term.atoms.push_back(std::move(atom));
  return OfTerm(std::move(term));
}

DimExpr DimExpr::Symbol(absl::string_view name) {
  return OfAtom({.kind = DimAtom::Kind::kSymbol, .symbol = std::string(name)});
}

DimExpr DimExpr::OperandAxis(int64_t operand, int64_t axis) {
  return OfAtom({.kind = DimAtom::Kind::kOperandAxis, .operand = operand, .axis = axis});
}

DimExpr DimExpr::OfTerm(DimTerm term) {
  DimExpr e;
  e.terms_.Mutable().push_back(std::move(term));
  return e;
}

absl::StatusOr<DimExpr> DimExpr::Normalised(int64_t constant, std::vector<DimTerm> terms) {
  DimExpr sum(constant);
  if (terms.empty()) return sum;
  std::sort(terms.begin(), terms.end(),
            [](const DimTerm& a, const DimTerm& b) { return CompareAtoms(a.atoms, b.atoms) > 0; });
  std::vector<DimTerm> merged;
  for (DimTerm& term : terms) {
    if (!merged.empty() && CompareAtoms(merged.back().atoms, term.atoms) == 0) {
      const std::optional<int64_t> coefficient = CheckedAdd(merged.back().coefficient, term.coefficient);
      if (!coefficient.has_value()) return Overflow();
      merged.back().coefficient = *coefficient;
    } else {
      merged.push_back(std::move(term));
    }
  }
  merged.erase(std::remove_if(merged.begin(), merged.end(), [](const DimTerm& t) { return t.coefficient == 0; }),
               merged.end());
  if (merged.size() > kMaxTerms) {
    return Refuse(Refusal::kDimExprInvalid, absl::StrCat("a size expression has more than ", kMaxTerms, " terms"));
  }
  if (merged.empty()) return sum;
  sum.terms_ = std::move(merged);
  if (sum.num_parts() > kMaxParts) return TooManyParts();
  if (sum.Depth() > kMaxDepth) {
    return Refuse(Refusal::kDimExprInvalid, absl::StrCat("a size expression is nested deeper than ", kMaxDepth));
  }
  return sum;
}

int64_t DimExpr::CountParts() const {
  int64_t parts = 0;
  for (const DimTerm& term : terms()) {
    parts += static_cast<int64_t>(term.atoms.size());
    for (const DimAtom& atom : term.atoms) {
      for (const DimExpr& arg : atom.args) parts += arg.num_parts();
    }
  }
  return parts;
}

int DimExpr::Depth() const {
  int depth = 0;
  for (const DimTerm& term : terms()) {
    if (term.atoms.size() > kMaxDepth) return kMaxDepth + 1;
    for (const DimAtom& atom : term.atoms) {
      for (const DimExpr& arg : atom.args) depth = std::max(depth, 1 + arg.Depth());
    }
  }
  return depth;
}

absl::StatusOr<DimExpr> DimExpr::Add(const DimExpr& a, const DimExpr& b) {
  const std::optional<int64_t> constant = CheckedAdd(a.constant_, b.constant_);
  if (!constant.has_value()) return Overflow();
  if (a.is_constant() || b.is_constant()) {
    DimExpr sum = a.is_constant() ? b : a;
    sum.constant_ = *constant;
    return sum;
  }
  std::vector<DimTerm> terms = a.terms();
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return Normalised(*constant, std::move(terms));
}

absl::StatusOr<DimExpr> DimExpr::Subtract(const DimExpr& a, const DimExpr& b) {
  ASSIGN_OR_RETURN(DimExpr negated, Multiply(b, DimExpr(-1)));
  return Add(a, negated);
}

absl::StatusOr<DimExpr> DimExpr::Multiply(const DimExpr& a, const DimExpr& b) {
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  const std::vector<DimTerm>&p = a.terms(), &q = b.terms();
  if ((p.size() + 1) * (q.size() + 1) > 4 * kMaxTerms) {
    return Refuse(Refusal::kDimExprInvalid, absl::StrCat("a size expression has more than ", kMaxTerms, " terms"));
  }
  // Before like terms are merged, the product has each part of one factor once for every term of the other.
  if (a.num_parts() * static_cast<int64_t>(q.size() + 1) + b.num_parts() * static_cast<int64_t>(p.size() + 1) >
      4 * kMaxParts) {
    return TooManyParts();
  }
  const std::optional<int64_t> constant = CheckedMul(a.constant_, b.constant_);
  if (!constant.has_value()) return Overflow();
  std::vector<DimTerm> terms;
  const auto append = [&terms](int64_t x, int64_t y, const std::vector<DimAtom>& s,
                               const std::vector<DimAtom>& t) -> absl::Status {
    const std::optional<int64_t> coefficient = CheckedMul(x, y);
    if (!coefficient.has_value()) return Overflow();
    if (*coefficient == 0) return absl::OkStatus();
    std::vector<DimAtom> atoms = s;
    atoms.insert(atoms.end(), t.begin(), t.end());
    std::sort(atoms.begin(), atoms.end(),
              [](const DimAtom& u, const DimAtom& v) { return DimAtom::Compare(u, v) < 0; });
    terms.push_back({.coefficient = *coefficient, .atoms = std::move(atoms)});
    return absl::OkStatus();
  };
  for (const DimTerm& s : p) RETURN_IF_ERROR(append(s.coefficient, b.constant_, s.atoms, {}));
  for (const DimTerm& t : q) RETURN_IF_ERROR(append(a.constant_, t.coefficient, {}, t.atoms));
  for (const DimTerm& s : p) {
    for (const DimTerm& t : q) RETURN_IF_ERROR(append(s.coefficient, t.coefficient, s.atoms, t.atoms));
  }
  return Normalised(*constant, std::move(terms));
}

absl::StatusOr<DimExpr> DimExpr::OfOperation(DimAtom::Kind kind, const DimExpr& a, const DimExpr& b) {
  DimExpr expr = OfAtom({.kind = kind, .symbol = {}, .args = {a, b}});
  return Normalised(0, expr.terms());
}

absl::StatusOr<DimExpr> DimExpr::FloorDivide(const DimExpr& a, const DimExpr& b) {
  if (b.is_constant()) {
    const int64_t divisor = b.constant_;
    if (divisor == 0) {
      return Refuse(Refusal::kDimExprOverflow, absl::StrCat("a size expression divides ", a.ToString(), " by zero"));
    }
    if (divisor == 1) return a;
    // MIN / -1 is the one quotient that does not fit.
    if (a.is_constant() && divisor != -1) return DimExpr(FloorDiv(a.constant_, divisor));
    const auto divides = [divisor](int64_t x) { return divisor > 1 && x % divisor == 0; };
    if (divides(a.constant_) &&
        std::all_of(a.terms().begin(), a.terms().end(), [&](const DimTerm& t) { return divides(t.coefficient); })) {
      DimExpr quotient = a;
      quotient.constant_ /= divisor;
      if (quotient.is_constant()) return quotient;
      for (DimTerm& t : quotient.terms_.Mutable()) t.coefficient /= divisor;
      return quotient;
    }
  }
  return OfOperation(DimAtom::Kind::kFloorDivide, a, b);
}

absl::StatusOr<DimExpr> DimExpr::Minimum(const DimExpr& a, const DimExpr& b) {
  if (a == b) return a;
  if (a.is_constant() && b.is_constant()) return DimExpr(std::min(a.constant_, b.constant_));
  const bool swap = Compare(b, a) < 0;
  return OfOperation(DimAtom::Kind::kMinimum, swap ? b : a, swap ? a : b);
}

absl::StatusOr<DimExpr> DimExpr::Maximum(const DimExpr& a, const DimExpr& b) {
  if (a == b) return a;
  if (a.is_constant() && b.is_constant()) return DimExpr(std::max(a.constant_, b.constant_));
  const bool swap = Compare(b, a) < 0;
  return OfOperation(DimAtom::Kind::kMaximum, swap ? b : a, swap ? a : b);
}

std::optional<absl::string_view> DimExpr::as_symbol() const {
  if (is_constant() || constant_ != 0 || terms().size() != 1) return std::nullopt;
  const DimTerm& term = terms()[0];
  if (term.coefficient != 1 || term.atoms.size() != 1 || term.atoms[0].kind != DimAtom::Kind::kSymbol) {
    return std::nullopt;
  }
  return term.atoms[0].symbol;
}

absl::StatusOr<int64_t> DimExpr::EvaluateSigned(const AtomValue& value) const {
  int64_t sum = constant_;
  for (const DimTerm& term : terms()) {
    int64_t product = term.coefficient;
    for (const DimAtom& atom : term.atoms) {
      int64_t v = 0;
      if (atom.kind == DimAtom::Kind::kSymbol || atom.kind == DimAtom::Kind::kOperandAxis) {
        ASSIGN_OR_RETURN(v, value(atom));
      } else {
        ASSIGN_OR_RETURN(const int64_t a, atom.args[0].EvaluateSigned(value));
        ASSIGN_OR_RETURN(const int64_t b, atom.args[1].EvaluateSigned(value));
        if (atom.kind == DimAtom::Kind::kMinimum) {
          v = std::min(a, b);
        } else if (atom.kind == DimAtom::Kind::kMaximum) {
          v = std::max(a, b);
        } else if (b == 0) {
          return Refuse(Refusal::kDimExprOverflow, absl::StrCat("the size ", ToString(), " divides ", a, " by zero"));
        } else if (b == -1) {
          const std::optional<int64_t> negated = CheckedSub(0, a);
          if (!negated.has_value()) return Overflow();
          v = *negated;
        } else {
          v = FloorDiv(a, b);
        }
      }
      const std::optional<int64_t> p = CheckedMul(product, v);
      if (!p.has_value()) return Overflow();
      product = *p;
    }
    const std::optional<int64_t> s = CheckedAdd(sum, product);
    if (!s.has_value()) return Overflow();
    sum = *s;
  }
  return sum;
}

absl::StatusOr<int64_t> DimExpr::Evaluate(const AtomValue& value) const {
  if (is_constant() && constant_ >= 0) return constant_;
  ASSIGN_OR_RETURN(const int64_t size, EvaluateSigned(value));
  if (size < 0) {
    return Refuse(Refusal::kDimExprOverflow, absl::StrCat("the size ", ToString(), " is negative: ", size));
  }
  return size;
}

bool DimExpr::may_be_refused() const {
  const auto atom_may = [](const DimAtom& atom) {
    switch (atom.kind) {
      case DimAtom::Kind::kSymbol:
      case DimAtom::Kind::kOperandAxis:
        return false;
      case DimAtom::Kind::kFloorDivide:
        return atom.args[0].may_be_refused() || !atom.args[1].is_constant() || atom.args[1].constant() <= 0;
      case DimAtom::Kind::kMinimum:
      case DimAtom::Kind::kMaximum:
        return atom.args[0].may_be_refused() || atom.args[1].may_be_refused();
    }
    return true;
  };
  if (constant_ < 0) return true;
  if (is_constant()) return false;
  return std::any_of(terms().begin(), terms().end(), [&](const DimTerm& term) {
    return term.coefficient < 0 || std::any_of(term.atoms.begin(), term.atoms.end(), atom_may);
  });
}

absl::StatusOr<DimExpr> DimExpr::Substitute(const AtomExpr& replacement) const {
  if (is_constant()) return *this;
  int64_t constant = constant_;
  std::vector<DimTerm> sum;  // brought into order once, since that takes longer than to add
  for (const DimTerm& term : terms()) {
    DimExpr product(term.coefficient);
    for (const DimAtom& atom : term.atoms) {
      DimExpr factor;
      if (atom.kind == DimAtom::Kind::kSymbol || atom.kind == DimAtom::Kind::kOperandAxis) {
        ASSIGN_OR_RETURN(factor, replacement(atom));
      } else {
        ASSIGN_OR_RETURN(const DimExpr a, atom.args[0].Substitute(replacement));
        ASSIGN_OR_RETURN(const DimExpr b, atom.args[1].Substitute(replacement));
        if (atom.kind == DimAtom::Kind::kMinimum) {
          ASSIGN_OR_RETURN(factor, Minimum(a, b));
        } else if (atom.kind == DimAtom::Kind::kMaximum) {
          ASSIGN_OR_RETURN(factor, Maximum(a, b));
        } else {
          ASSIGN_OR_RETURN(factor, FloorDivide(a, b));
        }
      }
      ASSIGN_OR_RETURN(product, Multiply(product, factor));
    }
    const std::optional<int64_t> added = CheckedAdd(constant, product.constant_);
    if (!added.has_value()) return Overflow();
    constant = *added;
    if (!product.is_constant()) sum.insert(sum.end(), product.terms().begin(), product.terms().end());
  }
  return Normalised(constant, std::move(sum));
}

void DimExpr::ForEachLeaf(const std::function<void(const DimAtom&)>& visit) const {
  for (const DimTerm& term : terms()) {
    for (const DimAtom& atom : term.atoms) {
      if (atom.args.empty()) visit(atom);
      for (const DimExpr& arg : atom.args) arg.ForEachLeaf(visit);
    }
  }
}

}  // namespace tensord
