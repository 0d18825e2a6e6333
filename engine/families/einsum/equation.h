#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_EQUATION_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_EQUATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// Stands in a term for the axes that the term does not name.
inline constexpr int64_t kEllipsis = -1;

// An einsum as it is written: the labels of each operand's axes and of the result's, before shapes are known.
struct Equation {
  std::vector<std::vector<int64_t>> operands;  // labels, at most one of them kEllipsis
  std::vector<int64_t> output;
  // The order that parentheses fix: members of a group are contracted from left to right, and so are members of the
  // whole if there is any group. Empty if there is none.
  ContractionPath groups;
};

// Reads "ij,jk->ik", "...ij,j->...i", "(ij,jk),kl->il". A label is an ASCII letter or digit, or any character past
// ASCII that is no space; spaces between labels mean nothing. Refused with ATTRIBUTE_INVALID.
absl::StatusOr<Equation> ParseEquation(absl::string_view text);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_EQUATION_H_
