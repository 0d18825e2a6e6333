#include "engine/tensor/run_time_size.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tensord {
namespace {

constexpr char kMark = '?';  // no letter of a client's symbol

bool IsPlain(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/'; }

using MaybeExpr = std::optional<DimExpr>;

MaybeExpr ValueOf(absl::StatusOr<DimExpr> expr) {
  if (!expr.ok()) return std::nullopt;
  return *std::move(expr);
}

bool IsNeverNegative(const DimExpr& size);

// Symbols are sizes.
bool IsNeverNegative(const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::kSymbol) return true;
  if (atom.args.size() != 2) return false;
  const bool first = IsNeverNegative(atom.args[0]), second = IsNeverNegative(atom.args[1]);
  return atom.kind == DimAtom::Kind::kMaximum ? first || second : first && second;
}

bool IsNeverNegative(const DimExpr& size) {
  if (size.constant() < 0) return false;
  return size.is_constant() || std::all_of(size.terms().begin(), size.terms().end(), [](const DimTerm& term) {
           return term.coefficient > 0 && std::all_of(term.atoms.begin(), term.atoms.end(),
                                                      [](const DimAtom& atom) { return IsNeverNegative(atom); });
         });
}

MaybeExpr UpperBound(const DimExpr& size, const RunTimeBounds& bounds);

// Returns the bound of one factor that depends on the run. Minimum, maximum and quotient grow with their (first)
// operand.
MaybeExpr UpperBound(const DimAtom& atom, const RunTimeBounds& bounds) {
  if (atom.kind == DimAtom::Kind::kSymbol) {
    const auto it = bounds.find(atom.symbol);
    return it == bounds.end() ? std::nullopt : it->second;
  }
  if (atom.args.size() != 2) return std::nullopt;
  const DimExpr& divisor = atom.args[1];
  const bool quotient = atom.kind == DimAtom::Kind::kFloorDivide;
  if (quotient && (!divisor.is_constant() || divisor.constant() <= 0)) return std::nullopt;
  const MaybeExpr a = UpperBound(atom.args[0], bounds), b = UpperBound(atom.args[1], bounds);
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  if (quotient) return ValueOf(DimExpr::FloorDivide(*a, *b));
  return ValueOf(atom.kind == DimAtom::Kind::kMinimum ? DimExpr::Minimum(*a, *b) : DimExpr::Maximum(*a, *b));
}

// The terms that a bound is made of; sizes that do not depend on the run stand for themselves.
MaybeExpr UpperBound(const DimExpr& size, const RunTimeBounds& bounds) {
  if (!DependsOnRun(size)) return size;
  MaybeExpr sum = DimExpr(size.constant());
  for (const DimTerm& term : size.terms()) {
    // With a factor that is negative a product shrinks as the other factors grow.
    const bool grows = term.atoms.size() == 1 || std::all_of(term.atoms.begin(), term.atoms.end(),
                                                             [](const DimAtom& atom) { return IsNeverNegative(atom); });
    const bool depends = DependsOnRun(DimExpr::OfTerm(term));
    if (depends && (term.coefficient < 0 || !grows)) return std::nullopt;
    MaybeExpr product = DimExpr(term.coefficient);
    if (!depends) {
      product = DimExpr::OfTerm(term);
    } else {
      for (const DimAtom& atom : term.atoms) {
        const bool is_run_time = atom.kind != DimAtom::Kind::kSymbol || IsRunTimeSymbol(atom.symbol);
        const MaybeExpr factor = is_run_time ? UpperBound(atom, bounds) : DimExpr::Symbol(atom.symbol);
        if (!factor.has_value()) return std::nullopt;
        product = ValueOf(DimExpr::Multiply(*product, *factor));
        if (!product.has_value()) return std::nullopt;
      }
    }
    sum = ValueOf(DimExpr::Add(*sum, *product));
    if (!sum.has_value()) return std::nullopt;
  }
  return sum;
}

}  // namespace

std::string RunTimeSymbol(absl::string_view node) {
  std::string symbol(1, kMark);
  for (char c : node) {
    if (IsPlain(c)) {
      symbol += c;
    } else {
      absl::StrAppend(&symbol, "~", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return symbol;
}

bool IsRunTimeSymbol(absl::string_view symbol) { return !symbol.empty() && symbol[0] == kMark; }

absl::string_view RunTimeSymbolPrefix(absl::string_view text) {
  size_t length = IsRunTimeSymbol(text) ? 1 : 0;
  while (length > 0 && length < text.size() && (IsPlain(text[length]) || text[length] == '~')) ++length;
  return text.substr(0, length);
}

bool DependsOnRun(const DimExpr& size) {
  bool depends = false;
  size.ForEachLeaf([&](const DimAtom& atom) {
    depends = depends || (atom.kind == DimAtom::Kind::kSymbol && IsRunTimeSymbol(atom.symbol));
  });
  return depends;
}

Dim WithExtent(DimExpr size, const RunTimeBounds& bounds) {
  Dim dim(std::move(size));
  if (dim.size.is_constant() || !DependsOnRun(dim.size)) return dim;
  MaybeExpr bound = UpperBound(dim.size, bounds);
  dim.extent = bound.has_value() ? Extent::kUpperBound : Extent::kUnknown;
  if (bound.has_value()) dim.bound = *std::move(bound);
  return dim;
}

}  // namespace tensord
