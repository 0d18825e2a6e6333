#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_TENSOR_FILES_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_TENSOR_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/shell/console.h"
#include "tensord/host_tensor.h"

namespace tensord::cli {

// A tensor of a command line, and the server's name for it.
struct TensorFile {
  std::string name;  // "operand 1", "input x"
  std::string file;
  std::string type;  // "f32[2,3]"
};

TensorFile DescribeTensorFile(std::string name, std::string file, const client::HostTensor& tensor);

// Reports a failure as Console::Fail does. If it is an INVALID_ARGUMENT, the tensors stand below it, since the server
// knows no files; in JSON they are the field `tensors`.
int FailWithTensors(const absl::Status& status, const std::vector<TensorFile>& tensors, Console& console);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_TENSOR_FILES_H_
