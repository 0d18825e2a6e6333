#include "server/daemon.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "server/compose.h"
#include "server/reloadable_parts.h"
#include "server/rpc/programs/warm_up.h"
#include "server/start_check.h"

namespace tensord::server {
namespace {

// For all that is left to do when the calls had their time; and when there is to be no waiting.
constexpr auto kEndTime = std::chrono::milliseconds(700);
constexpr auto kHurriedEndTime = std::chrono::milliseconds(250);

// Returns the settings as last reloaded; `reloader` is null before the server was ready.
ServerConfig::Drain DrainOf(const ServerConfig& started, const Reloader* reloader) {
  return reloader == nullptr ? started.drain() : reloader->running().drain();
}

}  // namespace

absl::Status Daemon::Check(const ServerConfig& config) {
  RETURN_IF_ERROR(CheckStart(config));
  return LoadFamilies(config).status();
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const ServerConfig& config, PollingThreads* polling,
                                                      const OtherBackends& others) {
  ASSIGN_OR_RETURN(std::unique_ptr<Daemon> daemon, Create(config, polling, others));
  RETURN_IF_ERROR(daemon->Serve());
  return daemon;
}

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Create(const ServerConfig& config, PollingThreads* polling,
                                                       const OtherBackends& others) {
  RETURN_IF_ERROR(Check(config));
  // Lives as long as the process: with its last user gRPC ends, and waits up to ten seconds for a thread of its own
  // that was polling on behalf of a large write.
  [[maybe_unused]] static const bool is_kept = (grpc_init(), true);
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  ASSIGN_OR_RETURN(daemon->listeners_, Listeners::Create(config));  // before anything that takes long
  daemon->files_ = FileWatch::StateOf(WatchedFiles(config));
  ASSIGN_OR_RETURN(daemon->parts_, Compose(config, others));
  daemon->parts_->service_parts.admission.polling = polling;
  return daemon;
}

absl::Status Daemon::Serve() {
  health_ = std::make_unique<Health>(parts_->devices->names());
  if (!config_.metrics().empty()) {
    ASSIGN_OR_RETURN(metrics_,
                     MetricsEndpoint::Start(config_.metrics(), parts_->collectables,
                                            {.live = [this] { Probe(); },
                                             .is_ready = [health = health_.get()] { return health->serving(); }}));
  }
  parts_->service_parts.request_drain = [this](std::optional<absl::Duration> timeout) { RequestDrain(timeout); };
  parts_->gate->MoveTo(ServingState::kWarming);
  RETURN_IF_ERROR(listeners_->Open(parts_.get(), health_.get()));
  RETURN_IF_ERROR(WarmUp());
  return BeginToServe();
}

absl::Status Daemon::BeginToServe() {
  reloader_ = std::make_unique<Reloader>(config_, ReloadablePartsOf(parts_.get(), broker()));
  if (config_.reload().check_files_ms() > 0) {
    file_watch_ = std::make_unique<FileWatch>(
        absl::Milliseconds(config_.reload().check_files_ms()), std::move(files_),
        [reloader = reloader_.get()] { return WatchedFiles(reloader->running()); }, [this] { return ReloadFiles(); });
  }
  std::optional<absl::StatusOr<ServerConfig>> kept;
  {
    MutexLock lock(&mutex_);
    if (stop_requests_ > 0) return Refuse(Refusal::kCancelled, "the server is to stop before it is ready");
    is_ready_ = true;
    parts_->gate->MoveTo(ServingState::kServing);
    kept = std::move(kept_reload_);
  }
  health_->SetServing(true);
  notifier_.Ready(absl::StrCat("serves at ", absl::StrJoin(grpc_addresses(), ", ")));
  notifier_.Watch([this] { Probe(); });
  if (kept.has_value()) Reload(*kept);
  if (config_.reload().check_files_ms() > 0 && !config_source_.files.empty()) {
    config_watch_ = std::make_unique<FileWatch>(
        absl::Milliseconds(config_.reload().check_files_ms()), config_source_.state,
        [this] { return config_source_.files; },
        [this] {
          Reload(config_source_.read(), ReloadCause::kFileChanged);
          return true;  // refused or not, it is read again when it has changed again
        });
  }
  return absl::OkStatus();
}

absl::Status Daemon::WarmUp() {
  const ServiceParts& parts = parts_->service_parts;
  const absl::Time start = SteadyNow();
  const int64_t restored = RestorePrograms(parts, absl::Milliseconds(config_.program_cache().restore_ms()), stop_);
  const v1::MemoryOrder order =
      config_.warm_up().order() == "row" ? v1::MEMORY_ORDER_ROW_MAJOR : v1::MEMORY_ORDER_COLUMN_MAJOR;
  for (const std::string& path : config_.warm_up().graphs()) {
    const absl::Status warm = WarmUpGraph(parts, path, order, stop_);
    if (warm.ok()) continue;
    // A program that ended a server before is not to keep this one from starting.
    const bool is_quarantined = IsRefusal(warm, Refusal::kQuarantined);
    if ((config_.warm_up().required() && !is_quarantined) || stop_.cancelled()) return warm;
    parts_->log->Event(LogLevel::kWarning, "graph not warmed up", warm.message());
  }
  const bool has_work = parts_->store != nullptr || config_.warm_up().graphs_size() > 0;
  if (has_work) {
    parts_->log->Event(LogLevel::kInfo, "warm",
                       absl::StrCat(restored, " programs from disk and ", config_.warm_up().graphs_size(),
                                    " graphs of the list in ", absl::FormatDuration(SteadyNow() - start)));
  }
  return absl::OkStatus();
}

bool Daemon::IsBusy() const {
  const CompilePool::Stats compiling = parts_->compile_pool->stats();
  if (compiling.queued + compiling.running > 0) return true;
  const auto& executors = parts_->executors->all();
  return std::any_of(executors.begin(), executors.end(), [](const auto& executor) {
    const DeviceExecutor::Stats stats = executor->stats();
    return stats.queued + stats.running > 0;
  });
}

void Daemon::Probe() const {
  parts_->gate->snapshot();
  parts_->cache->stats();
  parts_->log->dropped_lines();
  for (const auto& executor : parts_->executors->all()) executor->stats();
}

Daemon::~Daemon() {
  CountStopRequest();
  CountStopRequest();
  Stop();
}

Reloader::Outcome Daemon::Reload(const absl::StatusOr<ServerConfig>& next, ReloadCause cause) {
  {
    MutexLock lock(&mutex_);
    if (!is_ready_) {
      kept_reload_ = next;
      return {};
    }
  }
  absl::StatusOr<Reloader::Outcome> outcome = TakeConfig(next, cause);
  if (!outcome.ok()) {
    config_refused_ = true;
    TellReload(cause, outcome.status(), "");
    return {};
  }
  if (!outcome->need_restart.empty()) {
    parts_->log->Event(LogLevel::kWarning, "reload",
                       "these take a restart and stay as they are: " + absl::StrJoin(outcome->need_restart, ", "));
  }
  return *std::move(outcome);
}

absl::StatusOr<Reloader::Outcome> Daemon::TakeConfig(const absl::StatusOr<ServerConfig>& next, ReloadCause cause) {
  RETURN_IF_ERROR(next.status());
  const auto tell = [this, cause](const Reloader::Outcome& outcome) {
    const std::string changed = absl::StrJoin(outcome.changed, ", ");
    config_refused_ = false;
    TellReload(cause, absl::OkStatus(), changed.empty() ? "no setting has changed" : "changed: " + changed);
  };
  // Refusals of a restart are told now, also for settings that take one.
  const std::shared_ptr<const TlsMaterial> tls = parts_->tls == nullptr ? nullptr : parts_->tls->material();
  RETURN_IF_ERROR(CheckStart(*next, tls.get()));
  return reloader_->Reload(*next, tell);
}

bool Daemon::ReloadFiles() {
  const absl::Status status = reloader_->ReloadFiles();
  const std::string refused(status.message());
  if (status.ok() || refused != refused_files_) TellReload(ReloadCause::kFileChanged, status, "files have changed");
  refused_files_ = refused;
  return status.ok();
}

void Daemon::TellReload(ReloadCause cause, const absl::Status& status, absl::string_view what) {
  parts_->control_metrics->Reloaded(cause, status.ok(), status.ok() && !config_refused_);
  if (status.ok()) {
    parts_->log->Event(LogLevel::kInfo, "reload", what);
  } else {
    parts_->log->Event(LogLevel::kError, "reload",
                       absl::StrCat("refused, everything stays as it is: ", std::string(status.message())));
  }
}

int Daemon::CountStopRequest() {
  int count = 0;
  {
    MutexLock lock(&mutex_);
    count = ++stop_requests_;
    if (count > 1) hurry_ = true;
  }
  requested_.SignalAll();
  stop_.Cancel();
  if (parts_ != nullptr) parts_->gate->WakeWaiters();
  return count;
}

void Daemon::RequestStop() {
  const int count = CountStopRequest();
  bool is_ready = false;
  {
    MutexLock lock(&mutex_);
    is_ready = is_ready_;
  }
  if (count > 1) {
    EndWithin(kHurriedEndTime);
  } else if (!is_ready) {
    EndWithin(kEndTime);  // no call has a time
  }
}

void Daemon::EndWithin(std::chrono::milliseconds time) const {
  if (end_within_ != nullptr) end_within_(time);
}

void Daemon::RequestDrain(std::optional<absl::Duration> timeout) {
  {
    MutexLock lock(&mutex_);
    if (timeout.has_value()) drain_timeout_ = timeout;
    if (stop_requests_ > 0) return;
  }
  RequestStop();
}

void Daemon::RunUntilStopped() {
  {
    MutexLock lock(&mutex_);
    while (stop_requests_ == 0) requested_.Wait(&mutex_);
  }
  Stop();
}

void Daemon::WaitOutGrace() {
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(DrainOf(config_, reloader_.get()).grace_ms());
  MutexLock lock(&mutex_);
  while (!hurry_ && requested_.WaitUntil(&mutex_, until)) {
  }
}

void Daemon::Stop() {
  bool was_ready = false;
  {
    MutexLock lock(&mutex_);
    if (stopped_) return;
    stopped_ = true;
    was_ready = is_ready_;
  }
  if (listeners_ == nullptr || !listeners_->is_open()) return;
  const ServerConfig::Drain drain = DrainOf(config_, was_ready ? reloader_.get() : nullptr);
  const int64_t grace_ms = was_ready ? drain.grace_ms() : 0;
  parts_->log->Event(LogLevel::kInfo, "stopping",
                     absl::StrCat("health says NOT_SERVING; calls are still taken for ", grace_ms, " ms"));
  notifier_.Stopping("ends the calls in progress");
  health_->SetServing(false);
  if (grace_ms > 0) WaitOutGrace();
  parts_->gate->MoveTo(ServingState::kDraining);
  parts_->profiler->Stop();  // a call in progress that would go on for as long as it was asked to
  parts_->log->Event(LogLevel::kInfo, "draining", "the server takes no new calls and ends those in progress");
  absl::Duration timeout = absl::Milliseconds(drain.timeout_ms());
  {
    MutexLock lock(&mutex_);
    timeout = drain_timeout_.value_or(timeout);
  }
  const bool empty = parts_->gate->WaitUntilEmpty(SteadyNow() + timeout, [this] { return hurry_.load(); });
  if (!empty)
    parts_->log->Event(LogLevel::kWarning, "cancelling", "calls in progress are cancelled: the time to drain is over");
  const auto tracing_time =
      std::chrono::milliseconds(parts_->tracer == nullptr || hurry_ ? 0 : config_.tracing().timeout_ms());
  EndWithin(kEndTime + tracing_time);
  listeners_->EndCalls(/*at_once=*/!empty || hurry_);
  config_watch_.reset();
  file_watch_.reset();
  listeners_->EndSharing();  // to which a reload gives its settings
  if (parts_->tracer != nullptr) {
    parts_->tracer->Finish(SteadyNow() + absl::FromChrono(tracing_time));
  }
  parts_->gate->MoveTo(ServingState::kStopped);
  parts_->log->Event(LogLevel::kInfo, "stopped", "all calls have ended");
}

}  // namespace tensord::server
