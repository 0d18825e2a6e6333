#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/tensor/dim_expr.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

std::string AtomToString(const DimAtom& atom) {
  switch (atom.kind) {
    case DimAtom::Kind::kSymbol:
      return atom.symbol;
    case DimAtom::Kind::kOperandAxis:
      return absl::StrCat("dim(", atom.operand, ", ", atom.axis, ")");
    case DimAtom::Kind::kFloorDivide:
      return absl::StrCat("floordiv(", atom.args[0].ToString(), ", ", atom.args[1].ToString(), ")");
    case DimAtom::Kind::kMinimum:
      return absl::StrCat("min(", atom.args[0].ToString(), ", ", atom.args[1].ToString(), ")");
    case DimAtom::Kind::kMaximum:
      return absl::StrCat("max(", atom.args[0].ToString(), ", ", atom.args[1].ToString(), ")");
  }
  return "";
}

// expression := ['-'] product (('+' | '-') product)*;  product := factor ('*' factor)*;
// factor := number | symbol | dim(n, n) | floordiv(e, e) | min(e, e) | max(e, e) | '(' expression ')'
class Parser {
 public:
  Parser(absl::string_view text, bool run_time_symbols) : text_(text), run_time_symbols_(run_time_symbols) {}

  absl::StatusOr<DimExpr> Parse() {
    ASSIGN_OR_RETURN(DimExpr e, Expression());
    SkipSpace();
    if (at_ != text_.size()) return Error("unexpected text");
    return e;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return Refuse(Refusal::kTextSyntax,
                  absl::StrCat("size expression \"", text_, "\": ", what, " at column ", at_ + 1));
  }

  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  absl::StatusOr<DimExpr> Expression() {
    // One more than an expression is nested: the outermost one counts here.
    if (++depth_ > DimExpr::kMaxDepth + 1) return Error("nested too deep");
    const bool negative = Take('-');
    ASSIGN_OR_RETURN(DimExpr sum, Product(negative));
    while (true) {
      const bool minus = !Take('+');
      if (minus && !Take('-')) break;
      ASSIGN_OR_RETURN(const DimExpr term, Product(minus));
      ASSIGN_OR_RETURN(sum, DimExpr::Add(sum, term));
    }
    --depth_;
    return sum;
  }

  absl::StatusOr<DimExpr> Product(bool negative) {
    ASSIGN_OR_RETURN(DimExpr product, Factor(negative));
    while (Take('*')) {
      ASSIGN_OR_RETURN(const DimExpr factor, Factor(false));
      ASSIGN_OR_RETURN(product, DimExpr::Multiply(product, factor));
    }
    return product;
  }

  absl::StatusOr<int64_t> Number(bool negative) {
    SkipSpace();
    const size_t begin = at_;
    uint64_t value = 0;
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
    while (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_]))) {
      const uint64_t digit = static_cast<uint64_t>(text_[at_] - '0');
      if (value > (limit - digit) / 10) return Error("number too large");
      value = value * 10 + digit;
      ++at_;
    }
    if (at_ == begin) return Error("expected a number");
    return static_cast<int64_t>(negative ? uint64_t{0} - value : value);
  }

  absl::StatusOr<DimExpr> Factor(bool negative) {
    SkipSpace();
    if (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_]))) {
      ASSIGN_OR_RETURN(const int64_t n, Number(negative));
      return DimExpr(n);
    }
    ASSIGN_OR_RETURN(const DimExpr factor, Atom());
    if (!negative) return factor;
    return DimExpr::Multiply(factor, DimExpr(-1));
  }

  absl::StatusOr<DimExpr> Atom() {
    if (Take('(')) {
      ASSIGN_OR_RETURN(const DimExpr e, Expression());
      if (!Take(')')) return Error("expected ')'");
      return e;
    }
    if (run_time_symbols_ && at_ < text_.size() && IsRunTimeSymbol(text_.substr(at_))) {
      const absl::string_view symbol = RunTimeSymbolPrefix(text_.substr(at_));
      at_ += symbol.size();
      return DimExpr::Symbol(symbol);
    }
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (absl::ascii_isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.')) {
      ++at_;
    }
    const absl::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty() || absl::ascii_isdigit(static_cast<unsigned char>(word[0])) || word[0] == '.') {
      return Error("expected a size");
    }
    const bool axis = word == "dim";
    if (!axis && word != "floordiv" && word != "min" && word != "max") return DimExpr::Symbol(word);
    if (!Take('(')) return Error("expected '('");
    if (axis) {
      ASSIGN_OR_RETURN(const int64_t operand, Number(false));
      if (!Take(',')) return Error("expected ','");
      ASSIGN_OR_RETURN(const int64_t dimension, Number(false));
      if (!Take(')')) return Error("expected ')'");
      return DimExpr::OperandAxis(operand, dimension);
    }
    ASSIGN_OR_RETURN(const DimExpr a, Expression());
    if (!Take(',')) return Error("expected ','");
    ASSIGN_OR_RETURN(const DimExpr b, Expression());
    if (!Take(')')) return Error("expected ')'");
    if (word == "min") return DimExpr::Minimum(a, b);
    if (word == "max") return DimExpr::Maximum(a, b);
    return DimExpr::FloorDivide(a, b);
  }

  absl::string_view text_;
  const bool run_time_symbols_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string DimExpr::ToString() const {
  std::string text;
  const auto append = [&text](int64_t coefficient, absl::string_view product) {
    const bool negative = coefficient < 0;
    if (text.empty()) {
      if (negative) text = "-";
    } else {
      absl::StrAppend(&text, negative ? " - " : " + ");
    }
    const uint64_t magnitude =
        negative ? uint64_t{0} - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    if (product.empty()) {
      absl::StrAppend(&text, magnitude);
    } else if (magnitude == 1) {
      absl::StrAppend(&text, product);
    } else {
      absl::StrAppend(&text, magnitude, "*", product);
    }
  };
  for (const DimTerm& term : terms()) {
    std::string product;
    for (const DimAtom& atom : term.atoms) absl::StrAppend(&product, product.empty() ? "" : "*", AtomToString(atom));
    append(term.coefficient, product);
  }
  if (constant_ != 0 || is_constant()) append(constant_, "");
  return text;
}

absl::StatusOr<DimExpr> ParseDimExpr(absl::string_view text, bool run_time_symbols) {
  return Parser(text, run_time_symbols).Parse();
}

}  // namespace tensord
