#ifndef TENSORD_SERVER_IDENTITY_PRIVATE_FILE_H_
#define TENSORD_SERVER_IDENTITY_PRIVATE_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensord::server {

// The secrecy of a file that the server trusts.
enum class FileSecrecy {
  kPublic,  // anybody may read it: a certificate
  kSecret,  // its owner and its group alone: a key, hashes of tokens
};

// Reads a small file whose writers the server must trust. INVALID_ARGUMENT, with the path, if it cannot be read, is no
// file, is empty or large, if its group or others may write it, or if others may read a secret.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path, FileSecrecy secrecy);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_PRIVATE_FILE_H_
