#ifndef TENSORD_ENGINE_BASE_THREAD_NICENESS_H_
#define TENSORD_ENGINE_BASE_THREAD_NICENESS_H_

namespace tensord {

// Makes the calling thread give way to others: that much nicer than it was, 19 at most. Threads that it starts are as
// nice. Where the system refuses, all stays as it was. Returns the niceness that the thread has then.
int LowerThisThread(int by);

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_THREAD_NICENESS_H_
