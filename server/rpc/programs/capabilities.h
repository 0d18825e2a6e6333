#ifndef TENSORD_SERVER_RPC_PROGRAMS_CAPABILITIES_H_
#define TENSORD_SERVER_RPC_PROGRAMS_CAPABILITIES_H_

#include "engine/exec/backend/backend.h"
#include "engine/ir/op_registry.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Adds the ops that the device runs: one entry for each, with the dtypes of the op's first operand (of its result, if
// it takes none). Asks the backend, which has the last word on each program too.
void AddCapabilities(const std::string& device, const Backend& backend, const OpRegistry& registry,
                     v1::ServerInfo* info);

// Adds the full names of the extensions that the device runs for any dtype, or that are expanded into core ops, each
// once.
void AddFamilies(const Backend& backend, const OpRegistry& registry, v1::ServerInfo* info);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAMS_CAPABILITIES_H_
