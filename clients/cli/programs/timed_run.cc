#include "clients/cli/programs/timed_run.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::cli {
namespace {

// Notes how long each call takes.
class CallTimer {
 public:
  explicit CallTimer(std::vector<RunReport::Call>* calls) : calls_(calls) {}

  template <typename Work>
  auto Time(absl::string_view name, const Work& work) {
    const Clock::time_point begin = Clock::now();
    auto result = work();
    calls_->push_back({.name = std::string(name),
                       .start = absl::FromChrono(begin - started_),
                       .duration = absl::FromChrono(Clock::now() - begin)});
    return result;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::vector<RunReport::Call>* const calls_;
  const Clock::time_point started_ = Clock::now();
};

}  // namespace

absl::StatusOr<RunReport> CompileAndRun(const ProgramFlagValues& values, const v1::Graph& graph,
                                        absl::Span<const client::HostTensor> inputs) {
  std::vector<RunReport::Call> calls;
  CallTimer timer(&calls);
  absl::StatusOr<std::unique_ptr<client::Client>> client =
      timer.Time("connect", [&] { return client::Client::Connect(values.connection); });
  if (!client.ok()) return client.status();
  absl::StatusOr<v1::CompileResponse> compiled =
      timer.Time("compile", [&] { return (*client)->Compile(graph, values.options); });
  if (!compiled.ok()) return compiled.status();
  absl::StatusOr<client::ExecuteResult> result = timer.Time(
      "execute", [&] { return (*client)->Execute(compiled->program().fingerprint(), inputs, values.options); });
  if (!result.ok()) return result.status();
  if (result->outputs.size() != static_cast<size_t>(graph.outputs_size())) {
    return absl::InternalError(absl::StrCat("the server sent another number of results: ", result->outputs.size(),
                                            " for ", graph.outputs_size()));
  }
  v1::ExecutionStats stats = result->stats.message();
  return RunReport{.calls = std::move(calls),
                   .compiled = *std::move(compiled),
                   .result = *std::move(result),
                   .stats = std::move(stats)};
}

}  // namespace tensord::cli
