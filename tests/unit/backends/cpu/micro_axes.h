#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_MICRO_AXES_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_MICRO_AXES_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/fusion/micro_program.h"

// Spaces of micro programs in a few words.

namespace tensord::cpu {

using Axes = std::vector<MicroAxis>;

inline MicroAxis Kept(int64_t size) { return {.size = size}; }
inline MicroAxis Reduced(int64_t size) { return {.size = size, .is_reduced = true}; }

// "1024r 70 "
inline std::string AxesText(const Axes& axes) {
  std::string text;
  for (const MicroAxis& axis : axes) absl::StrAppend(&text, axis.size, axis.is_reduced ? "r " : " ");
  return text;
}

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_MICRO_AXES_H_
