#ifndef TENSORD_TESTS_TESTLIB_RANDOM_SLICES_H_
#define TENSORD_TESTS_TESTLIB_RANDOM_SLICES_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord {

// The bytes in slices of random lengths, some of which are empty.
inline grpc::ByteBuffer InSlices(absl::string_view bytes, std::mt19937_64* random) {
  std::vector<grpc::Slice> slices;
  while (!bytes.empty()) {
    const size_t most = std::uniform_int_distribution<int>(0, 3)(*random) == 0 ? bytes.size() : 40;
    const size_t length = std::min(bytes.size(), std::uniform_int_distribution<size_t>(0, most)(*random));
    slices.emplace_back(bytes.data(), length);
    bytes.remove_prefix(length);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_RANDOM_SLICES_H_
