// Files of users, which the client library reads and writes.
#ifndef TENSORD_CLIENTS_CLI_FILES_FILE_H_
#define TENSORD_CLIENTS_CLI_FILES_FILE_H_

#include "clients/cpp/files/file.h"

namespace tensord::cli {

using client::InputFile;
using client::kMostFileBytes;
using client::ReadFile;
using client::WriteFile;

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILES_FILE_H_
