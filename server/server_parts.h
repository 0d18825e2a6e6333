#ifndef TENSORD_SERVER_SERVER_PARTS_H_
#define TENSORD_SERVER_SERVER_PARTS_H_

#include <grpcpp/impl/service_type.h>
#include <prometheus/collectable.h>

#include <memory>
#include <vector>

#include "engine/exec/binding/binding_stats.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/turn_pool.h"
#include "engine/runtime/devices/executor_pool.h"
#include "engine/runtime/devices/segment_times.h"
#include "engine/runtime/programs/program_cache.h"
#include "engine/runtime/programs/program_store.h"
#include "engine/runtime/programs/quarantine.h"
#include "server/certificate_lines.h"
#include "server/connections/connection_bounds.h"
#include "server/connections/connection_places.h"
#include "server/devices.h"
#include "server/identity/audit.h"
#include "server/identity/authenticator.h"
#include "server/identity/tls_credentials.h"
#include "server/lifecycle/alarms.h"
#include "server/lifecycle/call_gate.h"
#include "server/lifecycle/file_watch.h"
#include "server/observe/logs/log.h"
#include "server/observe/metrics/control_metrics.h"
#include "server/observe/metrics/metrics.h"
#include "server/observe/metrics/trace_metrics.h"
#include "server/observe/records/flight_recorder.h"
#include "server/profiling/profiler.h"
#include "server/rpc/calls/fair_polling.h"
#include "server/rpc/calls/service_parts.h"
#include "server/rpc/programs/unserved_programs.h"
#include "server/server_families.h"
#include "server/sessions/session_store.h"
#include "server/shared_memory/broker_refusals.h"
#include "server/shared_memory/region_store.h"
#include "server/tracing/tracer.h"

namespace tensord::server {

// All parts of a server, in the reverse order of their destruction: no part uses one below it. Threads of compilers and
// executors are the exception: they tell calls of their end and are joined before all else. Each is thread-safe. Runs
// no gRPC server yet: the daemon does.
struct ServerParts {
  ~ServerParts();

  std::unique_ptr<const ServerFamilies> families;
  std::unique_ptr<FlightRecorder> recorder;
  std::unique_ptr<Log> log;
  std::unique_ptr<Alarms> alarms = std::make_unique<Alarms>();
  std::unique_ptr<Devices> devices;
  BindingOptions bindings;  // of all programs
  std::unique_ptr<ProgramCache> cache;
  std::unique_ptr<ProgramStore> store;     // null without a folder for it
  std::unique_ptr<Quarantine> quarantine;  // likewise
  std::unique_ptr<UnservedPrograms> unserved = std::make_unique<UnservedPrograms>();
  std::unique_ptr<CompilePool> compile_pool;
  std::unique_ptr<TurnPool> turns;      // of requests that go on after a wait
  std::unique_ptr<TurnPool> operators;  // of their calls
  std::unique_ptr<TurnPool> readers;    // of long requests
  std::unique_ptr<ExecutorPool> executors;
  std::unique_ptr<SessionStore> sessions;
  std::unique_ptr<CallGate> gate;
  std::unique_ptr<TenantBytes> unread_results;
  std::unique_ptr<OpenCalls> open_calls = std::make_unique<OpenCalls>();
  std::unique_ptr<ConnectionPlaces> connections;
  std::unique_ptr<ConnectionPlaces> admin_connections;
  std::shared_ptr<ConnectionBounds> connection_bounds, admin_connection_bounds;  // shared with the connections
  std::shared_ptr<HostBufferPool> payloads;
  std::unique_ptr<RegionStore> regions;  // null: no memory is shared
  std::unique_ptr<BrokerRefusals> broker_refusals = std::make_unique<BrokerRefusals>();
  std::unique_ptr<RateLimiter> rates;
  std::unique_ptr<SegmentTimes> segment_times;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<ControlMetrics> control_metrics;
  std::unique_ptr<TraceMetrics> trace_metrics;
  std::unique_ptr<Tracer> tracer;  // null: no call is traced
  std::unique_ptr<Audit> audit;
  std::unique_ptr<Authenticator> authenticator;
  std::shared_ptr<TlsStore> tls;                        // null: no TLS; shared with the credentials of the listeners
  std::unique_ptr<CertificateLines> certificate_lines;  // likewise
  std::unique_ptr<Profiler> profiler;
  FairPolling fair_polling;
  ServiceParts service_parts;
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables;
  std::unique_ptr<grpc::Service> compute_service;
  std::unique_ptr<grpc::Service> admin_service;
  std::unique_ptr<grpc::Service> channelz_service;
  std::unique_ptr<FileWatch> quarantine_watch;  // null without a quarantine
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SERVER_PARTS_H_
