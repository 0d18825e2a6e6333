#ifndef TENSORD_SERVER_RPC_CALLS_SERVICE_PARTS_H_
#define TENSORD_SERVER_RPC_CALLS_SERVICE_PARTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/exec/backend/parallel_for.h"
#include "engine/exec/binding/binding_stats.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "engine/ir/op_registry.h"
#include "engine/runtime/compile/turn_pool.h"
#include "engine/runtime/devices/executor_pool.h"
#include "engine/runtime/devices/segment_times.h"
#include "engine/runtime/programs/program_cache.h"
#include "engine/runtime/programs/program_store.h"
#include "engine/runtime/programs/quarantine.h"
#include "server/admission/rate_limiter.h"
#include "server/config/live_graph_limits.h"
#include "server/config/live_value.h"
#include "server/config/server_limit.h"
#include "server/connections/connection_places.h"
#include "server/identity/authenticator.h"
#include "server/lifecycle/alarms.h"
#include "server/lifecycle/call_gate.h"
#include "server/observe/logs/log.h"
#include "server/observe/metrics/metrics.h"
#include "server/observe/records/open_calls.h"
#include "server/profiling/profiler.h"
#include "server/sessions/session_store.h"
#include "server/shared_memory/region_store.h"

namespace tensord::server {

class FairPolling;
class FlightRecorder;
class PollingThreads;
class Tracer;
class UnservedPrograms;

// The parts that methods work with, in five groups of parts that are used together. They outlive the service; each is
// thread-safe, and the rest is constant.

// The sources of programs.
struct ProgramParts {
  const OpRegistry* registry = nullptr;
  CompilePool* compile_pool = nullptr;
  ProgramCache* cache = nullptr;
  ProgramStore* store = nullptr;     // null: no disk tier
  Quarantine* quarantine = nullptr;  // likewise
  UnservedPrograms* unserved = nullptr;
  BindingOptions bindings;                   // of every program
  std::vector<std::string> disabled_passes;  // for every request, beside its own
  std::vector<std::string> enabled_passes;   // likewise
  bool by_tenant = false;                    // each is of who sent its graph
  bool print_and_parse = false;              // every graph before it is compiled; for tests of the text form
};

// The devices that run them.
struct DeviceParts {
  const ExecutorPool* executors = nullptr;
  LiveInt64 max_priority;  // that a request gets
};

// The places of tensors.
struct TensorParts {
  SessionStore* sessions = nullptr;
  HostBufferPool* payloads = nullptr;  // memory for the data of arguments
  ParallelFor parallel_for;            // for large copies
  RegionStore* regions = nullptr;      // null: no memory is shared
  std::string shared_memory_socket;    // where clients get some; empty: nowhere
  TenantBytes* unread_results = nullptr;
};

// The bounds of calls, and the threads that continue them.
struct AdmissionParts {
  const Authenticator* authenticator = nullptr;
  CallGate* gate = nullptr;
  RateLimiter* rates = nullptr;
  ConnectionPlaces* connections = nullptr;  // of the listeners for calls; null: none is over TCP
  Alarms* alarms = nullptr;
  TurnPool* turns = nullptr;      // continue requests that waited; not bounded, since requests are
  TurnPool* operators = nullptr;  // for long work of operators, such as looking through the disk
  TurnPool* readers = nullptr;    // of long requests, and for other long work of one
  FairPolling* fair_polling = nullptr;
  PollingThreads* polling = nullptr;  // null: gRPC's threads are left alone
  LiveGraphLimits graph_limits;
  std::vector<ServerLimit> server_limits;  // those beside graph_limits, for GetServerInfo
  LiveDuration default_deadline;
  int64_t message_bytes = 0;  // of one message of a client
  LiveInt64 metadata_bytes;   // that a call may bring
  LiveInt64 stream_requests;  // in flight of one ExecuteStream
  LiveInt64 stream_bytes;     // of them
};

// The observers of calls.
struct ObserverParts {
  Metrics* metrics = nullptr;
  SegmentTimes* segment_times = nullptr;
  Log* log = nullptr;
  Audit* audit = nullptr;
  OpenCalls* open_calls = nullptr;
  FlightRecorder* recorder = nullptr;
  Tracer* tracer = nullptr;  // null: no call is traced
  Profiler* profiler = nullptr;
};

// All of them.
struct ServiceParts {
  std::string version;
  ProgramParts programs;
  DeviceParts devices;
  TensorParts tensors;
  AdmissionParts admission;
  ObserverParts observers;
  // Begins to stop the server, which then waits that long for calls in progress; none: the configured time.
  std::function<void(std::optional<absl::Duration>)> request_drain;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_SERVICE_PARTS_H_
