#ifndef TENSORD_ACCESS_H_
#define TENSORD_ACCESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensord/connect_options.h"

namespace tensord::client {

// The servers that a client trusts, and the credentials that it shows. A value.
struct Access {
  // TLS. Set by any of the files below, too.
  bool tls = false;
  // The signers of the server's certificate, in PEM; empty: the authorities of the system.
  std::string ca_file = {};
  // The client's own certificate and its key, in PEM; both or none.
  std::string certificate_file = {};
  std::string key_file = {};
  // A token, or the file that holds it alone; at most one of them.
  std::string token = {};
  std::string token_file = {};
};

// Reads the environment: TENSORD_TLS ("1"), TENSORD_CA_FILE, TENSORD_CERTIFICATE_FILE, TENSORD_KEY_FILE, TENSORD_TOKEN,
// TENSORD_TOKEN_FILE.
Access AccessFromEnvironment();

// Tells whether bytes sent to a target stay on this machine: a unix socket, or a loopback address.
bool IsLocal(absl::string_view target);

// Reads the files and sets credentials and metadata of the options. INVALID_ARGUMENT if a file cannot be read, one
// of a pair is missing, or a token would travel to another machine in plain text.
absl::Status SetAccess(const Access& access, ConnectOptions* options);

}  // namespace tensord::client

#endif  // TENSORD_ACCESS_H_
