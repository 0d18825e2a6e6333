#ifndef TENSORD_SERVER_OBSERVE_RECORDS_TERMINATION_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_TERMINATION_H_

namespace tensord::server {

// Has the process write why it ends, as a line of its log, where something throws and nobody catches: a library, or the
// system, which gives no more threads or memory. Once, at the start of main.
void TellWhyItTerminates();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_TERMINATION_H_
