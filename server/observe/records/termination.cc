#include "server/observe/records/termination.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "server/observe/records/crash_line.h"

namespace tensord::server {
namespace {

std::string Reason() {
  try {
    if (std::current_exception() == nullptr) return "no exception";
    throw;
  } catch (const std::bad_alloc&) {
    return "the system gives no more memory (ulimit -v, the control group)";
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) return error.what();
    return "the system gives no more threads (ulimit -u, TasksMax or pids.max of the control group, or memory)";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of no known kind";
  }
}

[[noreturn]] void Terminate() {
  CrashLine line;
  line.Add("level", "error");
  line.Add("event", "terminated");
  line.Add("message", Reason());
  line.WriteTo(STDERR_FILENO);
  std::abort();
}

}  // namespace

void TellWhyItTerminates() { std::set_terminate(&Terminate); }

}  // namespace tensord::server
