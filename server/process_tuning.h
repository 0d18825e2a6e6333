#ifndef TENSORD_SERVER_PROCESS_TUNING_H_
#define TENSORD_SERVER_PROCESS_TUNING_H_

namespace tensord::server {

// Tunes a process that is a server, or a benchmark to be measured like one: the allocator keeps large memory
// (TuneAllocator), and no lock is searched for cycles. Once, before anything else.
void TuneProcess();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_PROCESS_TUNING_H_
