#ifndef TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_JOB_H_
#define TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_JOB_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/fingerprint.h"
#include "engine/ir/graph.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/device_executor.h"
#include "engine/runtime/programs/program_cache.h"
#include "server/rpc/calls/service_parts.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// A graph to compile, and its device.
struct ProgramJob {
  Graph graph;
  CompileSettings settings;
  DeviceExecutor* executor = nullptr;  // of the device
};

// Decodes the job of a graph with its options, for that tenant alone if programs are a tenant's; empty: for all.
// Refuses as the codec does, and unknown devices; `still_wanted` as in DecodeGraph.
absl::StatusOr<ProgramJob> DecodeJob(const ServiceParts& parts, const std::string& tenant, const v1::Graph& graph,
                                     const v1::CompileOptions& options,
                                     const std::function<absl::Status()>& still_wanted = nullptr);

// Returns the bytes that the compilation of a graph is charged beside the graph and its key: 0 for small ones.
int64_t BytesToCompile(const Graph& graph);

// Returns the bytes that the making of a graph's derivative is charged beside the request: those of a compilation, and
// the constants, which the graph has once and each graph of the response again.
int64_t BytesToDifferentiate(const Graph& graph, bool split);

// Fails with QUARANTINED if the program is.
absl::Status CheckQuarantine(const ProgramParts& programs, const Fingerprint& fingerprint);

// Compiles, and takes the job's graph. A compiled program goes to the disk some time later, if there is a store.
absl::StatusOr<CompiledProgramPtr> CompileJob(const ServiceParts& parts, ProgramJob* job,
                                              const Fingerprint& fingerprint);

// Restores the program of that fingerprint from the disk. QUARANTINED; PROGRAM_NOT_FOUND if it is not there, or if the
// server's settings would not make it today. Takes the time of reading and compiling.
absl::StatusOr<ProgramCache::Restored> RestoreProgram(const ServiceParts& parts, const Fingerprint& fingerprint);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_PROGRAMS_PROGRAM_JOB_H_
