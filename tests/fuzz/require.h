#ifndef TENSORD_TESTS_FUZZ_REQUIRE_H_
#define TENSORD_TESTS_FUZZ_REQUIRE_H_

#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tensord {

// Ends the process if a promise does not hold, so that libFuzzer and the sanitizers see it: like CHECK, and unlike
// assert in every build.
inline void Require(bool holds, absl::string_view what, const absl::Status& status = absl::OkStatus()) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s: %s\n", static_cast<int>(what.size()), what.data(),
               status.ToString().c_str());
  std::abort();
}

}  // namespace tensord

#endif  // TENSORD_TESTS_FUZZ_REQUIRE_H_
