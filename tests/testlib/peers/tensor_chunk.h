#ifndef TENSORD_TESTS_TESTLIB_PEERS_TENSOR_CHUNK_H_
#define TENSORD_TESTS_TESTLIB_PEERS_TENSOR_CHUNK_H_

#include <cstdint>
#include <string>

#include "proto/checksum/crc32c.h"
#include "tensord/v1/compute.pb.h"

namespace tensord {

// A part of an upload, with the right checksum.
inline v1::PutTensorRequest ChunkOf(int64_t offset, const std::string& data) {
  v1::PutTensorRequest message;
  message.mutable_chunk()->set_offset(offset);
  message.mutable_chunk()->set_crc32c(Crc32c(data));
  message.mutable_chunk()->set_data(data);
  return message;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_TESTLIB_PEERS_TENSOR_CHUNK_H_
