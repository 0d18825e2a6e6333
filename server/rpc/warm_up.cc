#include "server/rpc/warm_up.h"

#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "proto/graph_file/graph_file.h"
#include "server/rpc/program_job.h"

namespace tensord::server {

namespace {

absl::StatusOr<v1::Graph> ReadGraph(const std::string& path) {
  ASSIGN_OR_RETURN(const wire::GraphFormat format, wire::GraphFormatOf(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError("cannot be read");
  std::ostringstream contents;
  contents << file.rdbuf();
  return wire::ParseGraph(contents.str(), format);
}

// Compiles on the pool, and waits.
absl::Status CompileGraph(const ServiceParts& parts, const v1::Graph& graph, v1::MemoryOrder order) {
  v1::CompileOptions options;
  options.set_order(order);
  ASSIGN_OR_RETURN(ProgramJob decoded, DecodeJob(parts, graph, options));
  ProgramKey key = MakeProgramKey(decoded.graph, decoded.settings);
  const auto job = std::make_shared<ProgramJob>(std::move(decoded));
  const Fingerprint fingerprint = key.fingerprint;
  Mutex mutex;
  CondVar changed;
  std::optional<absl::Status> outcome;
  parts.cache->GetOrCompile(
      std::move(key), [&parts, job, fingerprint] { return CompileJob(parts, job.get(), fingerprint); },
      [&](absl::StatusOr<ProgramCache::Found> found) {
        MutexLock lock(&mutex);
        outcome = found.status();
        changed.SignalAll();
      });
  MutexLock lock(&mutex);
  while (!outcome.has_value()) changed.Wait(&mutex);
  return *outcome;
}

}  // namespace

absl::Status WarmUpGraph(const ServiceParts& parts, const std::string& path, v1::MemoryOrder order) {
  const absl::StatusOr<v1::Graph> graph = ReadGraph(path);
  const absl::Status status = graph.ok() ? CompileGraph(parts, *graph, order) : graph.status();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("graph ", path, ": ", status.message()));
}

int64_t RestorePrograms(const ServiceParts& parts, absl::Duration most_time) {
  if (parts.store == nullptr || most_time <= absl::ZeroDuration()) return 0;
  const absl::Time until = absl::Now() + most_time;
  int64_t count = 0;
  for (const Fingerprint& fingerprint : parts.store->List()) {
    if (absl::Now() >= until) break;
    absl::StatusOr<ProgramCache::Restored> restored = [&]() -> absl::StatusOr<ProgramCache::Restored> {
      try {
        return RestoreProgram(parts, fingerprint);
      } catch (const std::exception& error) {  // out of memory
        return Refuse(Refusal::kInternal, error.what());
      }
    }();
    if (!restored.ok()) {
      parts.log->Event(LogLevel::kWarning, "program not restored",
                       absl::StrCat(fingerprint.ToHex(), ": ", restored.status().message()));
      continue;
    }
    if (!parts.cache->Insert(*std::move(restored))) break;
    ++count;
  }
  return count;
}

}  // namespace tensord::server
