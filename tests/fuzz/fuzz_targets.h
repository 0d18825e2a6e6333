#ifndef TENSORD_TESTS_FUZZ_FUZZ_TARGETS_H_
#define TENSORD_TESTS_FUZZ_FUZZ_TARGETS_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord {

// A function that takes any bytes. Its name is that of its libFuzzer binary and of its folder in tests/fuzz/corpus.
struct FuzzTarget {
  const char* name;
  void (*run)(absl::string_view bytes);
};

absl::Span<const FuzzTarget> FuzzTargets();
// Ends the process if there is none.
const FuzzTarget& FuzzTargetNamed(absl::string_view name);

}  // namespace tensord

#endif  // TENSORD_TESTS_FUZZ_FUZZ_TARGETS_H_
