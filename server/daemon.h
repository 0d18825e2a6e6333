#ifndef TENSORD_SERVER_DAEMON_H_
#define TENSORD_SERVER_DAEMON_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/runtime/devices/cancel_token.h"
#include "server/config/reloader.h"
#include "server/lifecycle/file_watch.h"
#include "server/lifecycle/service_notifier.h"
#include "server/listeners.h"
#include "server/observe/health.h"
#include "server/observe/metrics/control_metrics.h"
#include "server/observe/metrics/metrics_endpoint.h"
#include "server/server_parts.h"
#include "server/shared_memory/memory_broker.h"

namespace tensord::server {

// A server that answers: the composed parts, their listeners, and the way to an orderly end. Thread-safe.
//
//   absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(config);
//   ...                       // RequestStop, from any thread
//   (*daemon)->RunUntilStopped();
class Daemon {
 public:
  // Starts a server, which serves when this returns. UNAVAILABLE if an address cannot be had. INVALID_ARGUMENT if it is
  // no address, if it is beyond this machine without TLS and that was not allowed, or if a file named in the settings
  // cannot be used. `polling`, which may be null, outlives the daemon. `others` as in Devices::Create.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const ServerConfig& config, PollingThreads* polling = nullptr,
                                                       const OtherBackends& others = {});
  // The same in two steps: makes a server that nobody can reach yet, but that may be told to stop or to reload,
  static absl::StatusOr<std::unique_ptr<Daemon>> Create(const ServerConfig& config, PollingThreads* polling = nullptr,
                                                        const OtherBackends& others = {});
  // and its way, once, to one that serves: it listens, and warms up. CANCELLED if it was to stop before it was
  // ready.
  absl::Status Serve();
  // Refuses as Start would, before anything is done.
  static absl::Status Check(const ServerConfig& config);
  // Stops at once where RunUntilStopped did not.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // "unix:/path" or "127.0.0.1:4711", with the ports that were bound.
  const std::vector<std::string>& grpc_addresses() const { return listeners_->grpc_addresses(); }
  // Returns the address of tensord.v1.Admin; empty without one.
  const std::string& admin_address() const { return listeners_->admin_address(); }
  // "127.0.0.1:9464"; empty without a metrics endpoint.
  std::string metrics_address() const { return metrics_ == nullptr ? "" : metrics_->address(); }
  const ServerParts& parts() const { return *parts_; }
  // Returns null if no memory is shared.
  MemoryBroker* broker() const { return listeners_->broker(); }
  // The source of the configuration: its files, their states (FileWatch::StateOf) before they were first read, and the
  // way to read them again.
  struct ConfigSource {
    std::vector<std::string> files;
    std::string state;
    std::function<absl::StatusOr<ServerConfig>()> read;
  };
  // Lets a change of these files have the effect of Reload, each change once. Before it serves.
  void WatchConfig(ConfigSource source) { config_source_ = std::move(source); }

  // Returns the configuration at the start.
  const ServerConfig& config() const { return config_; }

  // Tells whether graphs are compiled or programs run, or wait for it: the destructor waits for these, even if nobody
  // else does.
  bool IsBusy() const;

  // Sets the function to call when the time of calls is over, and again whenever the end comes nearer. Its argument is
  // the time after which the process is to end, whatever still runs in it. Called before the daemon may be told to
  // stop.
  void SetEndWithin(std::function<void(std::chrono::milliseconds)> end_within) { end_within_ = std::move(end_within); }

  // The first time: drain. Again: do not wait any longer.
  void RequestStop();
  // Drains, and waits that long for calls in progress instead of the configured time.
  void RequestDrain(std::optional<absl::Duration> timeout);

  // Takes a configuration that was read again, and the files that it names: everything that can change without a
  // restart. If something is wrong, nothing changes, and the log and a metric say so. `next` may be the error of
  // reading. Kept until the server is ready. The outcome is empty if it was kept or refused.
  Reloader::Outcome Reload(const absl::StatusOr<ServerConfig>& next, ReloadCause cause = ReloadCause::kSignal);

  // Returns when a stop was requested and is complete: health says NOT_SERVING, after the grace new calls are refused
  // with SERVER_DRAINING, those in progress have ended or, past the timeout, were cancelled.
  void RunUntilStopped();

 private:
  explicit Daemon(const ServerConfig& config) : config_(config) {}

  absl::Status BeginToServe();
  // Does the work before the first call can come.
  absl::Status WarmUp();
  // Takes the locks that every call takes: it hangs where they would.
  void Probe() const;
  void Stop();
  // One request more; how many there were.
  int CountStopRequest();
  void EndWithin(std::chrono::milliseconds time) const;
  // Reloads as Reload does, the files alone; true if they were taken. On the watch's thread.
  bool ReloadFiles();
  absl::StatusOr<Reloader::Outcome> TakeConfig(const absl::StatusOr<ServerConfig>& next, ReloadCause cause);
  void TellReload(ReloadCause cause, const absl::Status& status, absl::string_view what);
  // Waits while calls are still taken.
  void WaitOutGrace();

  const ServerConfig config_;
  std::string files_;  // what those that are watched were before they were read
  std::unique_ptr<ServerParts> parts_;
  std::unique_ptr<Reloader> reloader_;
  std::string refused_files_;              // why the last look refused them, told once; the watch's
  std::unique_ptr<FileWatch> file_watch_;  // null: files are read again only on request
  ConfigSource config_source_;
  std::atomic<bool> config_refused_{false};  // what was last read of it
  std::unique_ptr<Health> health_;
  std::unique_ptr<MetricsEndpoint> metrics_;
  std::unique_ptr<Listeners> listeners_;

  // The things that its watch looks at stand above it.
  ServiceNotifier notifier_{ServiceNotifier::FromEnvironment()};

  std::function<void(std::chrono::milliseconds)> end_within_;  // empty: nobody asks
  std::atomic<bool> hurry_{false};
  CancelToken stop_;  // set by the first request to stop
  Mutex mutex_;
  CondVar requested_;
  int stop_requests_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Duration> drain_timeout_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ready_ ABSL_GUARDED_BY(mutex_) = false;  // it was once
  std::optional<absl::StatusOr<ServerConfig>> kept_reload_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FileWatch> config_watch_;  // as file_watch_, of the configuration; last: it uses everything above
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_DAEMON_H_
