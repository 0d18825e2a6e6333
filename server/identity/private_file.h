#ifndef TENSORD_SERVER_IDENTITY_PRIVATE_FILE_H_
#define TENSORD_SERVER_IDENTITY_PRIVATE_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensord::server {

// Whom a file that the server trusts may be open to.
enum class FileSecrecy {
  kPublic,  // anybody may read it: a certificate
  kSecret,  // its owner and its group alone: a key, hashes of tokens
};

// The content of a small file whose writers the server must trust. INVALID_ARGUMENT, with the path, where it cannot be
// read, is no file, is empty or large, where its group or others may write it, or where others may read what is secret.
absl::StatusOr<std::string> ReadPrivateFile(const std::string& path, FileSecrecy secrecy);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_PRIVATE_FILE_H_
