#ifndef TENSORD_CLIENTS_CLI_FILES_TENSOR_SUMMARY_H_
#define TENSORD_CLIENTS_CLI_FILES_TENSOR_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensord/host_tensor.h"

namespace tensord::cli {

// Returns up to `count` elements in row-major sequence, as text.
std::vector<std::string> FirstValues(const client::HostTensor& tensor, int64_t count);

// "f32[2,3] 1, 2, 3, …": dtype, shape, and the first values.
std::string Summarize(const client::HostTensor& tensor);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILES_TENSOR_SUMMARY_H_
