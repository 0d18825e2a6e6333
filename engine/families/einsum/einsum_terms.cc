#include "engine/families/einsum/einsum_terms.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/families/einsum/equation.h"

namespace tensord {
namespace {

absl::Status Invalid(absl::string_view what) { return Refuse(Refusal::kAttributeInvalid, what); }

absl::StatusOr<Equation> WrittenEquation(const Attributes& attrs) {
  const std::string& text = attrs.Text("equation");
  const auto &operands = attrs.IntLists("operands"), &output = attrs.IntLists("output");
  if (!text.empty()) {
    if (!operands.empty() || !output.empty()) return Invalid("equation is set, and so are operands or output");
    return ParseEquation(text);
  }
  if (operands.empty()) return Invalid("neither equation nor operands is set");
  if (output.size() != 1) return Invalid(absl::StrCat("output must be one list of labels, and is ", output.size()));
  for (const auto& lists : {operands, output}) {
    for (const std::vector<int64_t>& list : lists) {
      for (int64_t label : list) {
        if (label < 0) return Invalid(absl::StrCat("labels count from 0, and one is ", label));
      }
    }
  }
  return Equation{.operands = operands, .output = output[0]};
}

// Returns the axes that an ellipsis of a term stands for.
absl::StatusOr<int64_t> EllipsisRank(absl::Span<const int64_t> term, int64_t rank, size_t operand) {
  const int64_t named = std::count_if(term.begin(), term.end(), [](int64_t label) { return label != kEllipsis; });
  const bool has_ellipsis = named != static_cast<int64_t>(term.size());
  if (named == rank || (has_ellipsis && named < rank)) return rank - named;
  return Refuse(Refusal::kRankMismatch,
                absl::StrCat("the term of operand ", operand, " names ", named,
                             has_ellipsis ? " axes and an ellipsis" : " axes", ", and the operand has rank ", rank));
}

// Labels of the equation, and those of ellipses, become numbers from 0.
class Labels {
 public:
  // Returns an ellipsis' axis by its place from the right.
  int OfEllipsis(int64_t from_right) { return Of(-2 - from_right); }
  int Of(int64_t written) {
    const auto [it, is_new] = numbers_.try_emplace(written, static_cast<int>(numbers_.size()));
    return it->second;
  }
  bool Has(int64_t written) const { return numbers_.contains(written); }
  size_t size() const { return numbers_.size(); }

 private:
  absl::flat_hash_map<int64_t, int> numbers_;
};

// A term with its ellipsis written out.
std::vector<int> NumberTerm(absl::Span<const int64_t> term, int64_t ellipsis_rank, Labels* labels) {
  std::vector<int> numbers;
  for (int64_t label : term) {
    if (label != kEllipsis) {
      numbers.push_back(labels->Of(label));
      continue;
    }
    for (int64_t i = ellipsis_rank; i-- > 0;) numbers.push_back(labels->OfEllipsis(i));
  }
  return numbers;
}

// Returns a label as it was written: a number, or the character of that number.
std::string LabelText(bool is_character, int64_t label) {
  if (!is_character) return absl::StrCat(label);
  return label < 0x80 ? absl::StrFormat("\"%c\"", static_cast<char>(label)) : absl::StrFormat("U+%04X", label);
}

absl::Status CheckOutput(const Equation& equation, bool has_characters, int64_t ellipsis_rank, const Labels& labels) {
  for (int64_t label : equation.output) {
    if (label == kEllipsis || labels.Has(label)) continue;
    return Invalid(
        absl::StrCat("the output has the label ", LabelText(has_characters, label), ", which no operand has"));
  }
  const bool has_ellipsis =
      std::find(equation.output.begin(), equation.output.end(), kEllipsis) != equation.output.end();
  if (ellipsis_rank == 0 || has_ellipsis) return absl::OkStatus();
  return Invalid(absl::StrCat("an ellipsis stands for ", ellipsis_rank, " axes, and the output has no ellipsis"));
}

// Sizes of axes of one label that only a run knows, each once, in an order that does not depend on the operands'.
std::vector<DimExpr> Distinct(std::vector<DimExpr> sizes) {
  std::sort(sizes.begin(), sizes.end(), [](const DimExpr& a, const DimExpr& b) { return DimExpr::Compare(a, b) < 0; });
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// The size of each label, and which axes of ellipses only repeat.
absl::Status SetSizes(absl::Span<const TensorType* const> operands, absl::Span<const int64_t> ellipsis_ranks,
                      Labels* labels, EinsumTerms* terms) {
  std::vector<bool>& of_ellipsis = terms->of_ellipsis;
  of_ellipsis.resize(labels->size());
  std::vector<bool> has_size(labels->size());
  std::vector<std::vector<DimExpr>> open_sizes(labels->size());  // of ellipses
  const int64_t most = *std::max_element(ellipsis_ranks.begin(), ellipsis_ranks.end());
  for (int64_t i = 0; i < most; ++i) of_ellipsis[static_cast<size_t>(labels->OfEllipsis(i))] = true;
  terms->sizes.resize(labels->size());
  for (size_t o = 0; o < operands.size(); ++o) {
    for (size_t axis = 0; axis < terms->operands[o].size(); ++axis) {
      const size_t label = static_cast<size_t>(terms->operands[o][axis]);
      const Dim& size = operands[o]->shape[axis];
      Dim& known = terms->sizes[label];
      const bool is_better = of_ellipsis[label] && known.size.is(1) ? true : !known.is_static() && size.is_static();
      const bool only_repeats = of_ellipsis[label] && size.size.is(1);
      if (!has_size[label] || (is_better && !only_repeats)) known = size;
      has_size[label] = true;
      if (of_ellipsis[label] && !size.is_static()) open_sizes[label].push_back(size.size);
    }
  }
  for (size_t label = 0; label < open_sizes.size(); ++label) {
    if (open_sizes[label].size() < 2 || terms->sizes[label].is_static()) continue;
    const std::vector<DimExpr> sizes = Distinct(std::move(open_sizes[label]));
    if (sizes.size() < 2) continue;
    ASSIGN_OR_RETURN(terms->sizes[label], SizeOfBroadcast(sizes));
  }
  for (size_t o = 0; o < operands.size(); ++o) {
    for (size_t axis = 0; axis < terms->operands[o].size(); ++axis) {
      int& label = terms->operands[o][axis];
      if (!of_ellipsis[static_cast<size_t>(label)] || !operands[o]->shape[axis].size.is(1)) continue;
      if (!terms->sizes[static_cast<size_t>(label)].size.is(1)) label = kUnitAxis;
    }
  }
  return absl::OkStatus();
}

// The operands that are left, in order. Each is found by its position and taken in logarithmic time.
class LiveOperands {
 public:
  // Makes room for operands that are added later.
  LiveOperands(int operands, size_t added) : counts_(static_cast<size_t>(operands) + added + 1) {
    for (int i = 0; i < operands; ++i) Add(i);
  }

  int64_t size() const { return size_; }
  void Add(int operand) {
    places_.push_back(operand);
    Count(places_.size(), 1);
  }
  // Returns the place of the operand at that position; it stays there.
  size_t PlaceOf(int64_t position) const {
    size_t place = 0;
    for (size_t step = std::bit_floor(counts_.size()); step > 0; step /= 2) {
      if (place + step >= counts_.size() || counts_[place + step] > position) continue;
      place += step;
      position -= counts_[place];
    }
    return place;
  }
  // -1 if it is taken already.
  int TakeAt(size_t place) { return std::exchange(places_[place], -1); }
  void Close(size_t place) { Count(place + 1, -1); }

 private:
  // A Fenwick tree: how many are open in the power of two of places that ends at each.
  void Count(size_t at, int change) {
    size_ += change;
    for (; at < counts_.size(); at += at & (~at + 1)) counts_[at] += change;
  }

  std::vector<int64_t> counts_;
  std::vector<int> places_;
  int64_t size_ = 0;
};

// Returns a path of positions among the live operands, whose steps may take any number of them, as one of pairs.
absl::StatusOr<ContractionPath> PathOfPositions(absl::Span<const std::vector<int64_t>> steps, int operands) {
  ContractionPath path;
  LiveOperands live(operands, steps.size());
  for (const std::vector<int64_t>& step : steps) {
    if (step.empty()) return Invalid("path has a step without operands");
    std::vector<int> taken;
    std::vector<size_t> places;
    for (int64_t position : step) {
      if (position < 0 || position >= live.size()) {
        return Invalid(absl::StrCat("path names position ", position, " where ", live.size(), " operands are left"));
      }
      places.push_back(live.PlaceOf(position));
      taken.push_back(live.TakeAt(places.back()));
      if (taken.back() < 0) return Invalid(absl::StrCat("path names position ", position, " twice in a step"));
    }
    for (const size_t place : places) live.Close(place);
    int made = taken[0];
    for (size_t i = 1; i < taken.size(); ++i) {
      path.push_back({made, taken[i]});
      made = operands + static_cast<int>(path.size()) - 1;
    }
    live.Add(made);
  }
  if (live.size() == 1) return path;
  return Invalid(absl::StrCat("path leaves ", live.size(), " operands"));
}

}  // namespace

absl::StatusOr<DimExpr> SizeOfBroadcast(absl::Span<const DimExpr> sizes) {
  // Combines by halves, so that the expression does not get deep.
  const auto combined = [&](const auto& combine) -> absl::StatusOr<DimExpr> {
    std::vector<DimExpr> level(sizes.begin(), sizes.end());
    while (level.size() > 1) {
      std::vector<DimExpr> next;
      for (size_t i = 0; i + 1 < level.size(); i += 2) {
        ASSIGN_OR_RETURN(next.emplace_back(), combine(level[i], level[i + 1]));
      }
      if (level.size() % 2 == 1) next.push_back(level.back());
      level = std::move(next);
    }
    return level[0];
  };
  if (sizes.size() == 1) return sizes[0];
  ASSIGN_OR_RETURN(const DimExpr largest, combined(&DimExpr::Maximum));
  ASSIGN_OR_RETURN(const DimExpr smallest, combined(&DimExpr::Minimum));
  ASSIGN_OR_RETURN(const DimExpr some, DimExpr::Minimum(smallest, DimExpr(1)));
  return DimExpr::Multiply(largest, some);
}

absl::StatusOr<EinsumTerms> TermsOf(const Attributes& attrs, absl::Span<const TensorType* const> operands) {
  ASSIGN_OR_RETURN(const Equation equation, WrittenEquation(attrs));
  if (equation.operands.size() != operands.size()) {
    return Invalid(absl::StrCat("the einsum has ", equation.operands.size(), " terms, and the node ", operands.size(),
                                " operands"));
  }
  EinsumTerms terms;
  Labels labels;
  std::vector<int64_t> ellipsis_ranks;
  for (size_t i = 0; i < operands.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t rank, EllipsisRank(equation.operands[i], operands[i]->rank(), i));
    ellipsis_ranks.push_back(rank);
    terms.operands.push_back(NumberTerm(equation.operands[i], rank, &labels));
  }
  const int64_t ellipsis_rank = *std::max_element(ellipsis_ranks.begin(), ellipsis_ranks.end());
  RETURN_IF_ERROR(CheckOutput(equation, !attrs.Text("equation").empty(), ellipsis_rank, labels));
  terms.output = NumberTerm(equation.output, ellipsis_rank, &labels);
  RETURN_IF_ERROR(SetSizes(operands, ellipsis_ranks, &labels, &terms));

  const auto& path = attrs.IntLists("path");
  if (!path.empty()) {
    if (!equation.groups.empty()) return Invalid("path is set, and the equation has parentheses");
    ASSIGN_OR_RETURN(terms.path, PathOfPositions(path, static_cast<int>(operands.size())));
  } else {
    terms.path = equation.groups;
  }
  return terms;
}

}  // namespace tensord
