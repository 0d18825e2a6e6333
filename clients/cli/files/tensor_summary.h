#ifndef TENSORD_CLIENTS_CLI_FILES_TENSOR_SUMMARY_H_
#define TENSORD_CLIENTS_CLI_FILES_TENSOR_SUMMARY_H_

#include <cstdint>
#include <string>

#include "google/protobuf/struct.pb.h"
#include "tensord/host_tensor.h"

namespace tensord::cli {

// Returns up to `count` elements in row-major sequence, for JSON: numbers, true and false, [real, imaginary] of a
// complex number, and the text of an integer beyond ±2^53, which readers of JSON would round.
google::protobuf::ListValue FirstValues(const client::HostTensor& tensor, int64_t count);

// "f32[2,3] 1, 2, 3, …": dtype, shape, and the first values.
std::string Summarize(const client::HostTensor& tensor);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILES_TENSOR_SUMMARY_H_
