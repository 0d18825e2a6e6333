#ifndef TENSORD_CLIENTS_CLI_OPERATORS_NAMED_PROGRAMS_H_
#define TENSORD_CLIENTS_CLI_OPERATORS_NAMED_PROGRAMS_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "tensord/admin_client.h"

namespace tensord::cli {

using Fingerprints = google::protobuf::RepeatedPtrField<std::string>;

// Programs that a command names, or all. INVALID_ARGUMENT if it does neither or both, or one is empty.
absl::Status CheckNamed(const Fingerprints& fingerprints, bool all);

// Replaces beginnings of fingerprints by the one program's that begins so. INVALID_ARGUMENT if not one does.
absl::Status CompleteFingerprints(client::AdminClient& admin, Fingerprints* fingerprints);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_OPERATORS_NAMED_PROGRAMS_H_
