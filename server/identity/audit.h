#ifndef TENSORD_SERVER_IDENTITY_AUDIT_H_
#define TENSORD_SERVER_IDENTITY_AUDIT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/steady_time.h"
#include "server/observe/logs/log.h"
#include "server/observe/metrics/control_metrics.h"
#include "server/observe/records/call_ids.h"
#include "server/observe/records/request_record.h"
#include "server/observe/records/rpc_method.h"

namespace tensord::server {

// Logs the events that an operator may have to account for, at every log level: calls refused because of their caller,
// and calls of operators. A refused caller may come as often as he likes, so lines beyond kBurst and then kPerSecond
// are left out. The next line says how many; if none comes, a line of its own does, kTellAfter later, or the last one.
// Calls of operators have a line each.
//
// Thread-safe. The log must outlive it; its alarms' source must be gone before it.
class Audit {
 public:
  static constexpr int kBurst = 20;
  static constexpr int kPerSecond = 5;
  static constexpr absl::Duration kTellAfter = absl::Seconds(1);

  // Calls a function at that time, on any thread.
  using SetAlarm = std::function<void(absl::Time, std::function<void()>)>;

  // Without alarms the next line, or the last one, tells the number of lines left out.
  explicit Audit(Log* log, SetAlarm set_alarm = nullptr, std::function<absl::Time()> clock = &SteadyNow)
      : log_(log), set_alarm_(std::move(set_alarm)), clock_(std::move(clock)) {}
  ~Audit() { TellLeftOut(); }
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  // Logs a refused call. `tenant` is empty if the caller is unknown. `what` names the refused part of a call that may
  // go on.
  void Refused(AuthRefusal reason, RpcMethod method, const std::string& peer, const std::string& tenant,
               const CallIds& ids = {}, absl::string_view what = "", absl::string_view owner = "");
  // A call of an operator that was let in, and how it ended.
  void OperatorCalled(const RequestRecord& record, const std::string& peer);
  // Says how many lines were left out since the last one, where there were some.
  void TellLeftOut();

 private:
  // Tells whether a line may be written now; `left_out` is then the number of lines left out before it. If false,
  // `sets_alarm` tells whether an alarm is to be set.
  bool Take(absl::Time now, int64_t* left_out, bool* sets_alarm);

  Log* const log_;
  const SetAlarm set_alarm_;  // may be null
  const std::function<absl::Time()> clock_;
  Mutex mutex_;
  double lines_ ABSL_GUARDED_BY(mutex_) = kBurst;
  absl::Time counted_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_alarm_set_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_AUDIT_H_
