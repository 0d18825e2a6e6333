#include <cstddef>
#include <cstdint>

#include "tests/fuzz/entries.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tensord::FuzzReflection({reinterpret_cast<const char*>(data), size});
  return 0;
}
