#include "server/rpc/programs/warm_up.h"

#include <chrono>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "proto/graph_file/graph_file.h"
#include "server/rpc/programs/program_job.h"

namespace tensord::server {

namespace {

// The tenant of these turns: no caller's.
constexpr char kOwnTenant[] = "";

absl::StatusOr<v1::Graph> ReadGraph(const std::string& path) {
  ASSIGN_OR_RETURN(const wire::GraphFormat format, wire::GraphFormatOf(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("cannot be read");
  std::ostringstream contents;
  contents << file.rdbuf();
  return wire::ParseGraph(contents.str(), format);
}

// A result that comes on another thread, and its waiter. Shared by both; thread-safe.
template <typename Result>
class Awaited {
 public:
  void Come(Result result) {
    MutexLock lock(&mutex_);
    result_ = std::move(result);
    changed_.SignalAll();
  }
  // Returns nothing if the server is to stop, or the time is over, first.
  std::optional<Result> Wait(const CancelToken& stop, std::chrono::steady_clock::time_point until) {
    const CancelToken::Listener listener = stop.Listen([this] {
      MutexLock lock(&mutex_);
      changed_.SignalAll();
    });
    std::optional<Result> result;
    {
      MutexLock lock(&mutex_);
      while (!result_.has_value() && !stop.cancelled() && changed_.WaitUntil(&mutex_, until)) {
      }
      result = std::move(result_);
    }
    stop.Forget(listener);
    return result;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);
};

// Returns the bound of work without another end.
constexpr std::chrono::hours kLongest(24);

// Does the work on the pool, where it goes on after a return, and returns its result; nothing if the server is to stop,
// or the time is over, first.
template <typename Result, typename Work>
std::optional<Result> OnPool(CompilePool* pool, const CancelToken& stop, const Work& work,
                             std::chrono::steady_clock::time_point until = std::chrono::steady_clock::now() +
                                                                           kLongest) {
  const auto awaited = std::make_shared<Awaited<Result>>();
  const absl::StatusOr<CompilePool::Ticket> ticket = pool->Submit(kOwnTenant, [awaited, work] {
    try {
      work(awaited);
    } catch (const std::exception& error) {  // out of memory
      awaited->Come(Refuse(Refusal::kInternal, error.what()));
    }
  });
  if (!ticket.ok()) return Result(ticket.status());
  return awaited->Wait(stop, until);
}

using AwaitedStatus = std::shared_ptr<Awaited<absl::Status>>;

// Tells `awaited` some time.
absl::Status CompileGraph(const ServiceParts& parts, const std::string& path, v1::MemoryOrder order,
                          const AwaitedStatus& awaited) {
  ASSIGN_OR_RETURN(const v1::Graph graph, ReadGraph(path));
  v1::CompileOptions options;
  options.set_order(order);
  ASSIGN_OR_RETURN(ProgramJob decoded, DecodeJob(parts, /*tenant=*/"", graph, options));
  ProgramKey key = MakeProgramKey(decoded.graph, decoded.settings);
  const auto job = std::make_shared<ProgramJob>(std::move(decoded));
  const Fingerprint fingerprint = key.fingerprint;
  parts.programs.cache->GetOrCompile(
      std::move(key), [&parts, job, fingerprint] { return CompileJob(parts, job.get(), fingerprint); },
      [awaited](const absl::StatusOr<ProgramCache::Found>& found) { awaited->Come(found.status()); });
  return absl::OkStatus();
}

}  // namespace

absl::Status WarmUpGraph(const ServiceParts& parts, const std::string& path, v1::MemoryOrder order,
                         const CancelToken& stop) {
  const std::optional<absl::Status> status =
      OnPool<absl::Status>(parts.programs.compile_pool, stop, [&parts, path, order](const AwaitedStatus& awaited) {
        const absl::Status begun = CompileGraph(parts, path, order, awaited);
        if (!begun.ok()) awaited->Come(begun);
      });
  if (!status.has_value()) return Refuse(Refusal::kCancelled, "the server is to stop before it has warmed up");
  if (status->ok()) return *status;
  absl::Status told(status->code(), absl::StrCat("graph ", path, ": ", status->message()));
  status->ForEachPayload([&told](absl::string_view url, const absl::Cord& detail) { told.SetPayload(url, detail); });
  return told;
}

int64_t RestorePrograms(const ServiceParts& parts, absl::Duration most_time, const CancelToken& stop) {
  if (parts.programs.store == nullptr || most_time <= absl::ZeroDuration()) return 0;
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(most_time);
  int64_t count = 0;
  for (const Fingerprint& fingerprint : parts.programs.store->List()) {
    if (std::chrono::steady_clock::now() >= until) break;
    // True if there was room for it. A restore that takes longer than there is time goes on, and is there then.
    using HadRoom = absl::StatusOr<bool>;
    const std::optional<HadRoom> had_room = OnPool<HadRoom>(
        parts.programs.compile_pool, stop,
        [&parts, fingerprint](const std::shared_ptr<Awaited<HadRoom>>& awaited) {
          absl::StatusOr<ProgramCache::Restored> restored = RestoreProgram(parts, fingerprint);
          awaited->Come(restored.ok() ? HadRoom(parts.programs.cache->Insert(*std::move(restored)))
                                      : restored.status());
        },
        until);
    if (!had_room.has_value()) break;
    if (!had_room->ok()) {
      parts.observers.log->Event(LogLevel::kWarning, "program not restored",
                                 absl::StrCat(fingerprint.ToHex(), ": ", had_room->status().message()));
      continue;
    }
    if (!**had_room) break;
    ++count;
  }
  return count;
}

}  // namespace tensord::server
