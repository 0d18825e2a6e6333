// A libFuzzer binary of the target that TENSORD_FUZZ_TARGET names.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tensord::FuzzTarget& target = tensord::FuzzTargetNamed(TENSORD_FUZZ_TARGET);
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
