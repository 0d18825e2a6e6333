#ifndef TENSORD_HEALTH_H_
#define TENSORD_HEALTH_H_

#include "absl/strings/string_view.h"

namespace tensord::client {

// The state of a service in grpc.health.v1. The numbers are those of its HealthCheckResponse.ServingStatus.
enum class Health { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// Spells it as that enumeration does: "SERVING".
absl::string_view HealthName(Health health);

}  // namespace tensord::client

#endif  // TENSORD_HEALTH_H_
