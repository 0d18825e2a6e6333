#include "server/rpc/calls/request_wait.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/steady_time.h"

namespace tensord::server {

RequestWait::RequestWait(const RpcRequest& request)
    : RequestWait(request.parts().admission.alarms, request.deadline(), request.cancel(), "the program ran") {}

RequestWait::RequestWait(Alarms* alarms, absl::Time deadline, std::shared_ptr<const CancelToken> cancel,
                         std::string for_what)
    : alarms_(alarms), deadline_(deadline), cancel_(std::move(cancel)), for_what_(std::move(for_what)) {}

bool RequestWait::Take(GiveUp* give_up) {
  std::optional<Alarms::Id> alarm;
  CancelToken::Listener listener = 0;
  {
    MutexLock lock(&mutex_);
    if (std::exchange(ended_, true)) return false;
    *give_up = std::move(give_up_);
    give_up_ = nullptr;
    alarm = alarm_;
    listener = listener_;
  }
  if (!alarm.has_value()) return true;
  cancel_->Forget(listener);
  alarms_->Drop(*alarm);
  return true;
}

bool RequestWait::End() {
  GiveUp unused;
  return Take(&unused);
}

void RequestWait::Watch(GiveUp give_up) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  give_up_ = std::move(give_up);
  const Alarms::Id alarm = alarms_->Set(deadline_, [self = shared_from_this()] { self->Ring(); });
  alarm_ = alarm;
  listener_ = cancel_->Listen([alarms = alarms_, alarm] { alarms->RingNow(alarm); });
  if (cancel_->cancelled()) alarms_->RingNow(alarm);  // who was cancelled before is not told
}

void RequestWait::Ring() {
  GiveUp give_up;
  if (!Take(&give_up)) return;
  give_up(deadline_ <= SteadyNow()
              ? Refuse(Refusal::kDeadlineExceeded, absl::StrCat("the deadline passed before ", for_what_))
              : Refuse(Refusal::kCancelled, absl::StrCat("the call was cancelled before ", for_what_)));
}

}  // namespace tensord::server
