#ifndef TENSORD_TESTS_TESTLIB_PEERS_BYTE_SLICES_H_
#define TENSORD_TESTS_TESTLIB_PEERS_BYTE_SLICES_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
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

// The bytes of all slices.
inline std::string Flatten(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) std::abort();  // never of a buffer that was filled
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_BYTE_SLICES_H_
