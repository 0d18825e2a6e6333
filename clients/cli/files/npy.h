// NumPy's .npy files, which the client library reads and writes.
#ifndef TENSORD_CLIENTS_CLI_FILES_NPY_H_
#define TENSORD_CLIENTS_CLI_FILES_NPY_H_

#include "tensord/npy.h"

namespace tensord::cli {

using client::FormatNpy;
using client::ParseNpy;
using client::ReadNpy;
using client::WriteNpy;

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILES_NPY_H_
