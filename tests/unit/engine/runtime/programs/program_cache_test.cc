#include "engine/runtime/programs/program_cache.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "engine/base/stop_signal.h"
#include "engine/ops/core_ops.h"
#include "gtest/gtest.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

using Source = ProgramCache::Source;

struct CacheAnswer {
  CompiledProgramPtr program;
  Source source = Source::kMemory;
  std::string reason;
};

class ProgramCacheTest : public testing::Test {
 protected:
  // A program that is little more than a constant of that many bytes.
  CompiledProgramPtr ProgramOf(int64_t bytes) {
    Graph graph;
    Node node{.name = "k", .op = &Def(CoreOp::kConstant), .attrs = Attributes(Def(CoreOp::kConstant).attrs)};
    node.attrs.Set("value",
                   std::make_shared<const Literal>(*Literal::Create({.dtype = DType::kBool, .shape = {bytes}})));
    graph.AddOutput("y", graph.AddNode(std::move(node)));
    return *Compile(std::move(graph), {.device = "hidden:0"}, Fingerprint(), &backend_);
  }

  static ProgramKey Key(const std::string& bytes) { return {.fingerprint = Fingerprint::Of(bytes), .bytes = bytes}; }

  ProgramCache::DoneFn Done() {
    return [this](absl::StatusOr<ProgramCache::Found> found) {
      if (found.ok()) return answers_.Put({.program = found->program, .source = found->source});
      answers_.Put({.reason = DetailOf(found.status()).value_or(RefusalDetail{.reason = "?"}).reason});
    };
  }

  // Asks, and waits for the answer.
  CacheAnswer Get(ProgramCache* cache, ProgramKey key, ProgramCache::CompileFn compile) {
    const size_t before = answers_.size();
    cache->GetOrCompile(std::move(key), std::move(compile), Done());
    return answers_.WaitFor(before + 1).back();
  }
  CacheAnswer Get(ProgramCache* cache, const std::string& key, CompiledProgramPtr program) {
    return Get(cache, Key(key), [program] { return program; });
  }

  static absl::StatusOr<CompiledProgramPtr> MustNotCompile() {
    ADD_FAILURE() << "compiled again";
    return Refuse(Refusal::kInternal, "compiled again");
  }

  // Why there is no program of that fingerprint, empty if there is one.
  static std::string WhyNot(ProgramCache* cache, const Fingerprint& fingerprint) {
    return DetailOf(cache->Find(fingerprint).status()).value_or(RefusalDetail()).reason;
  }

  HiddenMemoryBackend backend_;
  Inbox<CacheAnswer> answers_;
};

TEST_F(ProgramCacheTest, CompilesOnceAndRemembers) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  const CompiledProgramPtr program = ProgramOf(10);
  EXPECT_EQ(WhyNot(&cache, Key("a").fingerprint), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(Get(&cache, "a", program).source, Source::kCompiled);
  cache.GetOrCompile(Key("a"), MustNotCompile, Done());
  ASSERT_EQ(answers_.size(), 2u);  // answered before it returned
  EXPECT_EQ(answers_.WaitFor(2)[1].source, Source::kMemory);
  EXPECT_EQ(answers_.WaitFor(2)[1].program, program);
  EXPECT_EQ(*cache.Find(Key("a").fingerprint), program);
  const ProgramCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.compiled, 1);
  EXPECT_EQ(stats.entries, 1);
  EXPECT_EQ(stats.bytes, program->size_bytes() + 1);
}

TEST_F(ProgramCacheTest, ThreadsThatAskAtOnceShareOneCompilation) {
  constexpr int kThreads = 8;
  CompilePool pool(2, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  const CompiledProgramPtr program = ProgramOf(10);
  Event gate;
  std::atomic<int> compilations{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const auto compile = [&]() -> absl::StatusOr<CompiledProgramPtr> {
        ++compilations;
        gate.Wait();
        return program;
      };
      cache.GetOrCompile(Key("a"), compile, Done());
    });
  }
  for (std::thread& thread : threads) thread.join();  // nobody waited for the compilation
  EXPECT_EQ(cache.stats().joined, kThreads - 1);
  EXPECT_EQ(answers_.size(), 0u);
  gate.Set();
  int compiled = 0;
  for (const CacheAnswer& answer : answers_.WaitFor(kThreads)) {
    EXPECT_EQ(answer.program, program);
    EXPECT_NE(answer.source, Source::kMemory);
    compiled += answer.source == Source::kCompiled;
  }
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(compilations, 1);
}

TEST_F(ProgramCacheTest, WhatWasRefusedIsRefusedForAWhile) {
  CompilePool pool(1, 10);
  absl::Time now = absl::FromUnixSeconds(1000);
  ProgramCache cache(
      {.max_bytes = 1 << 20, .refused = {.keep = absl::Seconds(30)}, .steady_now = [&now] { return now; }}, &pool);
  int attempts = 0;
  Inbox<absl::Status> refusals;
  const auto ask = [&](const std::string& node) {
    cache.GetOrCompile(
        Key("a"),
        [&attempts, node]() -> absl::StatusOr<CompiledProgramPtr> {
          ++attempts;
          return WithNode(Refuse(Refusal::kShapeMismatch, "sizes differ"), node, "add");
        },
        [&](absl::StatusOr<ProgramCache::Found> found) { refusals.Put(found.status()); },
        [node] { return std::vector<std::string>{node}; });
  };
  ask("n1");
  EXPECT_EQ(DetailOf(refusals.WaitFor(1)[0])->node, "n1");
  ask("n2");
  ASSERT_EQ(refusals.size(), 2u) << "answered at once";
  EXPECT_EQ(DetailOf(refusals.WaitFor(2)[1])->node, "n2") << "in the asker's names";
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(cache.stats().negative, 1);
  EXPECT_EQ(cache.stats().failed, 1);
  now += absl::Seconds(30);
  ask("n3");
  EXPECT_EQ(DetailOf(refusals.WaitFor(3)[2])->node, "n3");
  EXPECT_EQ(attempts, 2);
}

TEST_F(ProgramCacheTest, WhoJoinsARefusalHearsItsOwnNames) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  Event gate;
  Inbox<absl::Status> refusals;
  for (const char* node : {"n1", "n2"}) {
    cache.GetOrCompile(
        Key("a"),
        [&gate]() -> absl::StatusOr<CompiledProgramPtr> {
          gate.Wait();
          return WithNode(Refuse(Refusal::kShapeMismatch, "sizes differ"), "n1", "add");
        },
        [&](absl::StatusOr<ProgramCache::Found> found) { refusals.Put(found.status()); },
        [node] { return std::vector<std::string>{node}; });
  }
  gate.Set();
  EXPECT_EQ(DetailOf(refusals.WaitFor(2)[0])->node, "n1");
  EXPECT_EQ(DetailOf(refusals.WaitFor(2)[1])->node, "n2");
}

TEST_F(ProgramCacheTest, BringsBackOnceForAllWhoAsk) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  const CompiledProgramPtr program = ProgramOf(10);
  Event gate;
  std::atomic<int> restores{0};
  const auto restore = [&]() -> absl::StatusOr<ProgramCache::Restored> {
    ++restores;
    gate.Wait();
    return ProgramCache::Restored{.key = Key("a"), .program = program};
  };
  for (int i = 0; i < 3; ++i) cache.FindOrRestore(Key("a").fingerprint, restore, Done());
  gate.Set();
  for (const CacheAnswer& answer : answers_.WaitFor(3)) {
    EXPECT_EQ(answer.program, program);
    EXPECT_EQ(answer.source, Source::kDisk);
  }
  EXPECT_EQ(restores, 1);
  EXPECT_EQ(cache.stats().restored, 3);
  EXPECT_EQ(Get(&cache, Key("a"), MustNotCompile).source, Source::kMemory);
  const auto none = []() -> absl::StatusOr<ProgramCache::Restored> {
    return Refuse(Refusal::kProgramNotFound, "none");
  };
  cache.FindOrRestore(Key("b").fingerprint, none, Done());
  EXPECT_EQ(answers_.WaitFor(5).back().reason, "PROGRAM_NOT_FOUND");
}

// Names are no part of a key: the program from disk has another client's.
TEST_F(ProgramCacheTest, WhoCompilesKeepsItsOwnWhereAnEqualOneComesBackMeanwhile) {
  CompilePool pool(2, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  const CompiledProgramPtr own = ProgramOf(10), from_disk = ProgramOf(10);
  Event gate;
  cache.GetOrCompile(
      Key("a"),
      [&]() -> absl::StatusOr<CompiledProgramPtr> {
        gate.Wait();
        return own;
      },
      Done());
  cache.GetOrCompile(Key("a"), MustNotCompile, Done());
  cache.FindOrRestore(
      Key("a").fingerprint, [&] { return ProgramCache::Restored{.key = Key("a"), .program = from_disk}; }, Done());
  EXPECT_EQ(answers_.WaitFor(1)[0].program, from_disk);
  gate.Set();
  const std::vector<CacheAnswer> answers = answers_.WaitFor(3);
  EXPECT_EQ(answers[1].source, Source::kCompiled);
  EXPECT_EQ(answers[1].program, own);
  EXPECT_EQ(answers[2].source, Source::kJoined);
  EXPECT_EQ(answers[2].program, from_disk) << "as whoever comes later";
  EXPECT_EQ(*cache.Find(Key("a").fingerprint), from_disk);
  EXPECT_EQ(cache.stats().entries, 1);
}

TEST_F(ProgramCacheTest, WhatWasInsertedIsFromDiskOnce) {
  CompilePool pool(1, 10);
  const CompiledProgramPtr program = ProgramOf(10), large = ProgramOf(1000);
  ProgramCache cache({.max_bytes = program->size_bytes() + 100}, &pool);
  EXPECT_TRUE(cache.Insert({.key = Key("a"), .program = program}));
  EXPECT_TRUE(cache.Insert({.key = Key("a"), .program = ProgramOf(10)})) << "it is here";
  EXPECT_FALSE(cache.Insert({.key = Key("b"), .program = large})) << "no room";
  EXPECT_EQ(cache.List()[0].last_used, absl::InfinitePast());
  EXPECT_TRUE(cache.UsedSince(absl::UnixEpoch()).empty());
  const CacheAnswer first = Get(&cache, Key("a"), MustNotCompile);
  EXPECT_EQ(first.program, program);
  EXPECT_EQ(first.source, Source::kDisk);
  EXPECT_EQ(Get(&cache, Key("a"), MustNotCompile).source, Source::kMemory);
  EXPECT_EQ(cache.UsedSince(absl::UnixEpoch()).size(), 1u);
  EXPECT_EQ(cache.stats().entries, 1);
  EXPECT_EQ(cache.stats().evictions, 0);
}

TEST_F(ProgramCacheTest, EvictsWhatIsNamed) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  const CompiledProgramPtr program = ProgramOf(10);
  for (const char* key : {"a", "b", "c"}) Get(&cache, key, program);
  EXPECT_EQ(cache.Evict(Key("b").fingerprint), 1);
  EXPECT_EQ(cache.Evict(Key("b").fingerprint), 0);
  EXPECT_EQ(WhyNot(&cache, Key("b").fingerprint), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(WhyNot(&cache, Key("a").fingerprint), "");
  EXPECT_EQ(cache.List().size(), 2u);
  EXPECT_EQ(cache.EvictAll(), 2);
  EXPECT_EQ(cache.stats().removed, 3);
  EXPECT_EQ(cache.stats().evictions, 0) << "nobody needed room";
  EXPECT_EQ(cache.stats().entries, 0);
  EXPECT_EQ(cache.stats().bytes, 0);
  EXPECT_EQ(Get(&cache, "a", program).source, Source::kCompiled);
}

TEST_F(ProgramCacheTest, AFailureIsToldToAllAndForgotten) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  Event gate;
  const auto fail = [&gate]() -> absl::StatusOr<CompiledProgramPtr> {
    gate.Wait();
    return Refuse(Refusal::kShapeMismatch, "no");
  };
  for (int i = 0; i < 3; ++i) cache.GetOrCompile(Key("a"), fail, Done());
  gate.Set();
  for (const CacheAnswer& answer : answers_.WaitFor(3)) EXPECT_EQ(answer.reason, "SHAPE_MISMATCH");
  EXPECT_EQ(cache.stats().failed, 1);
  EXPECT_EQ(cache.stats().entries, 0);
  const CompiledProgramPtr program = ProgramOf(10);
  EXPECT_EQ(Get(&cache, "a", program).program, program);
}

TEST_F(ProgramCacheTest, AnExceptionOfTheCompilerIsAnAnswer) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  const auto fail = []() -> absl::StatusOr<CompiledProgramPtr> { throw std::runtime_error("out of everything"); };
  EXPECT_EQ(Get(&cache, Key("a"), fail).reason, "INTERNAL");
  const CompiledProgramPtr program = ProgramOf(10);
  EXPECT_EQ(Get(&cache, "a", program).program, program);
}

TEST_F(ProgramCacheTest, TheLeastRecentlyUsedGoesFirst) {
  CompilePool pool(1, 10);
  const CompiledProgramPtr a = ProgramOf(100000), b = ProgramOf(100000), c = ProgramOf(100000), d = ProgramOf(100000);
  ProgramCache cache({.max_bytes = 2 * a->size_bytes() + 100}, &pool);  // two fit
  Get(&cache, "a", a);
  Get(&cache, "b", b);
  EXPECT_EQ(cache.stats().evictions, 0);
  EXPECT_EQ(Get(&cache, Key("a"), MustNotCompile).program, a);  // b is the oldest now
  Get(&cache, "c", c);
  EXPECT_EQ(WhyNot(&cache, Key("b").fingerprint), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(*cache.Find(Key("a").fingerprint), a);  // c is the oldest now
  Get(&cache, "d", d);
  EXPECT_EQ(WhyNot(&cache, Key("c").fingerprint), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(*cache.Find(Key("a").fingerprint), a);
  EXPECT_EQ(*cache.Find(Key("d").fingerprint), d);
  EXPECT_EQ(cache.stats().evictions, 2);
  EXPECT_EQ(cache.stats().entries, 2);
  EXPECT_EQ(cache.stats().bytes, a->size_bytes() + d->size_bytes() + 2);
}

TEST_F(ProgramCacheTest, ALowerBoundHoldsAtOnce) {
  CompilePool pool(1, 10);
  const CompiledProgramPtr a = ProgramOf(100000), b = ProgramOf(100000);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  Get(&cache, "a", a);
  Get(&cache, "b", b);
  cache.SetBounds(a->size_bytes() + 100, absl::Seconds(7));
  EXPECT_EQ(WhyNot(&cache, Key("a").fingerprint), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(*cache.Find(Key("b").fingerprint), b);
  EXPECT_EQ(cache.stats().evictions, 1);
  EXPECT_EQ(cache.keep_refused(), absl::Seconds(7));
  cache.SetBounds(1 << 20, absl::ZeroDuration());
  Get(&cache, "a", a);
  EXPECT_EQ(cache.stats().entries, 2);
}

TEST_F(ProgramCacheTest, WhatRunsKeptForSizesCountsWithoutBeingFoundAgain) {
  const auto stats = std::make_shared<BindingStats>();
  const BindingOptions bindings{.max_sets = 1000, .stats = stats};
  const auto sum = [&](const std::string& symbol) {
    Graph graph;
    const ValueId x = graph.AddInput("x", {.dtype = DType::kF32, .shape = {Dim(DimExpr::Symbol(symbol))}});
    Node node{.name = "y", .op = &Def(CoreOp::kAdd), .attrs = Attributes(Def(CoreOp::kAdd).attrs)};
    node.operands = {x, x};
    graph.AddOutput("y", graph.AddNode(std::move(node)));
    return *Compile(std::move(graph), {.device = "hidden:0"}, Fingerprint(), &backend_, bindings);
  };
  const CompiledProgramPtr a = sum("n"), b = sum("m");
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 8 * a->size_bytes(), .sized = stats}, &pool);
  Get(&cache, "a", a);
  Get(&cache, "b", b);
  const int64_t before = a->size_bytes();
  for (int64_t n = 1; a->size_bytes() < 8 * before; ++n) {
    ASSERT_TRUE(a->Bind({{.dtype = DType::kF32, .shape = {n}}}).ok()) << "as a run does";
  }
  EXPECT_EQ(cache.stats().bytes, a->size_bytes() + b->size_bytes() + 2) << "said at once";
  EXPECT_TRUE(cache.Find(Key("b").fingerprint).ok());
  EXPECT_EQ(WhyNot(&cache, Key("a").fingerprint), "PROGRAM_NOT_FOUND") << "it went although nobody asked for it";
}

TEST_F(ProgramCacheTest, AProgramLargerThanTheCacheStaysUntilTheNext) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 10}, &pool);
  const CompiledProgramPtr a = ProgramOf(100), b = ProgramOf(100);
  Get(&cache, "a", a);
  EXPECT_EQ(*cache.Find(Key("a").fingerprint), a);
  Get(&cache, "b", b);
  EXPECT_EQ(WhyNot(&cache, Key("a").fingerprint), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(*cache.Find(Key("b").fingerprint), b);
}

TEST_F(ProgramCacheTest, EqualFingerprintsOfOtherBytesAreOtherPrograms) {
  CompilePool pool(2, 10);
  const CompiledProgramPtr one = ProgramOf(100000), two = ProgramOf(100000), other = ProgramOf(100000);
  ProgramCache cache({.max_bytes = 2 * one->size_bytes() + 100}, &pool);
  const Fingerprint same = Fingerprint::Of("same");
  Event gate;
  const auto compile = [&gate](CompiledProgramPtr program) -> ProgramCache::CompileFn {
    return [&gate, program]() -> absl::StatusOr<CompiledProgramPtr> {
      gate.Wait();
      return program;
    };
  };
  // In flight at once, each with a second caller.
  Inbox<CompiledProgramPtr> ones, twos;
  const auto into = [](Inbox<CompiledProgramPtr>* inbox) -> ProgramCache::DoneFn {
    return [inbox](absl::StatusOr<ProgramCache::Found> found) { inbox->Put(found.ok() ? found->program : nullptr); };
  };
  cache.GetOrCompile({.fingerprint = same, .bytes = "1"}, compile(one), into(&ones));
  cache.GetOrCompile({.fingerprint = same, .bytes = "2"}, compile(two), into(&twos));
  cache.GetOrCompile({.fingerprint = same, .bytes = "1"}, MustNotCompile, into(&ones));
  cache.GetOrCompile({.fingerprint = same, .bytes = "2"}, MustNotCompile, into(&twos));
  gate.Set();
  for (const CompiledProgramPtr& program : ones.WaitFor(2)) EXPECT_EQ(program, one);
  for (const CompiledProgramPtr& program : twos.WaitFor(2)) EXPECT_EQ(program, two);
  // In memory.
  EXPECT_EQ(cache.stats().entries, 2);
  EXPECT_EQ(Get(&cache, {.fingerprint = same, .bytes = "1"}, MustNotCompile).program, one);
  EXPECT_EQ(Get(&cache, {.fingerprint = same, .bytes = "2"}, MustNotCompile).program, two);
  // One of them is evicted, the other one stays.
  Get(&cache, "other", other);
  EXPECT_EQ(cache.stats().entries, 2);
  EXPECT_EQ(Get(&cache, {.fingerprint = same, .bytes = "2"}, MustNotCompile).program, two);
  EXPECT_EQ(Get(&cache, {.fingerprint = same, .bytes = "1"}, [&one] { return one; }).source, Source::kCompiled);
}

TEST_F(ProgramCacheTest, AFingerprintOfTwoProgramsNamesNone) {
  CompilePool pool(2, 10);
  const CompiledProgramPtr one = ProgramOf(100000), two = ProgramOf(100000), other = ProgramOf(100000);
  ProgramCache cache({.max_bytes = 2 * one->size_bytes() + 100}, &pool);
  const Fingerprint same = Fingerprint::Of("same");
  Get(&cache, {.fingerprint = same, .bytes = "1"}, [&one] { return one; });
  EXPECT_EQ(*cache.Find(same), one);
  Get(&cache, {.fingerprint = same, .bytes = "2"}, [&two] { return two; });
  EXPECT_EQ(WhyNot(&cache, same), "FINGERPRINT_AMBIGUOUS");
  // A client that was given it for the first program must not get the second one when only that is left.
  Get(&cache, "other", other);
  EXPECT_EQ(cache.stats().evictions, 1);
  EXPECT_EQ(WhyNot(&cache, same), "FINGERPRINT_AMBIGUOUS");
  EXPECT_EQ(*cache.Find(Key("other").fingerprint), other);
}

TEST_F(ProgramCacheTest, ProgramsInOnePlaceAreToldApart) {
  CompilePool pool(2, 10);
  const CompiledProgramPtr a = ProgramOf(100000), b = ProgramOf(100000), c = ProgramOf(100000);
  ProgramCache cache({.max_bytes = 2 * a->size_bytes() + 100, .collide = true}, &pool);
  EXPECT_EQ(Get(&cache, "a", a).source, Source::kCompiled);
  EXPECT_EQ(Get(&cache, "b", b).program, b);
  EXPECT_EQ(*cache.Find(Key("b").fingerprint), b);
  EXPECT_EQ(*cache.Find(Key("a").fingerprint), a);
  EXPECT_EQ(Get(&cache, Key("a"), MustNotCompile).program, a);
  EXPECT_EQ(WhyNot(&cache, Key("c").fingerprint), "PROGRAM_NOT_FOUND");
  EXPECT_EQ(Get(&cache, "c", c).program, c);
  EXPECT_EQ(WhyNot(&cache, Key("b").fingerprint), "PROGRAM_NOT_FOUND") << "the least recently used";
  EXPECT_EQ(*cache.Find(Key("a").fingerprint), a);
  EXPECT_EQ(*cache.Find(Key("c").fingerprint), c);
}

TEST_F(ProgramCacheTest, AFullQueueRefusesAndTheNextAttemptWorks) {
  CompilePool pool(1, 1);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  const CompiledProgramPtr a = ProgramOf(1), b = ProgramOf(2), c = ProgramOf(3);
  Event started, gate;
  cache.GetOrCompile(
      Key("a"),
      [&]() -> absl::StatusOr<CompiledProgramPtr> {
        started.Set();
        gate.Wait();
        return a;
      },
      Done());
  started.Wait();
  cache.GetOrCompile(
      Key("b"), [&b] { return b; }, Done());  // fills the queue
  cache.GetOrCompile(Key("c"), MustNotCompile, Done());
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_.WaitFor(1)[0].reason, "QUEUE_FULL");
  cache.GetOrCompile(Key("b"), MustNotCompile, Done());  // joining needs no place in the queue
  gate.Set();
  answers_.WaitFor(4);
  EXPECT_EQ(Get(&cache, "c", c).program, c);
  EXPECT_EQ(cache.stats().compiled, 3);
}

TEST_F(ProgramCacheTest, ManyThreadsAndKeys) {
  CompilePool pool(2, 1000);
  std::vector<CompiledProgramPtr> programs;
  for (int k = 0; k < 6; ++k) programs.push_back(ProgramOf(10000));
  ProgramCache cache({.max_bytes = 3 * programs[0]->size_bytes() + 100}, &pool);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, answered{0};
  Event all;
  constexpr int kThreads = 4, kAsks = 300;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kAsks; ++i) {
        const size_t k = static_cast<size_t>(i * (t + 1)) % programs.size();
        const CompiledProgramPtr want = programs[k];
        cache.GetOrCompile(
            Key(std::string(1, static_cast<char>('a' + k))), [want] { return want; },
            [&, want](absl::StatusOr<ProgramCache::Found> found) {
              wrong += !found.ok() || found->program != want;
              if (++answered == kThreads * kAsks) all.Set();
            });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  all.Wait();
  EXPECT_EQ(wrong, 0);
  const ProgramCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.hits + stats.compiled + stats.joined, kThreads * kAsks);
  EXPECT_EQ(stats.compiled - stats.evictions, stats.entries);
  EXPECT_LE(stats.entries, 3);
}

TEST(CompilePool, IsBoundedAndFinishesWhatIsQueued) {
  std::atomic<int> done{0};
  Event started, gate;
  {
    CompilePool pool(1, 3);
    EXPECT_TRUE(pool.Submit("a",
                            [&] {
                              started.Set();
                              gate.Wait();
                              ++done;
                            })
                    .ok());
    started.Wait();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(pool.Submit("a", [&] { ++done; }).ok());
    pool.SetBounds({.max_queued = 2});
    EXPECT_FALSE(pool.Submit("a", [&] { done = 1000; }).ok());
    EXPECT_EQ(DetailOf(pool.Submit("a", [] {}).status())->limit_value, 2);
    pool.SetBounds({.max_queued = 3});
    EXPECT_TRUE(pool.Submit("a", [&] { ++done; }).ok());
    EXPECT_FALSE(pool.Submit("a", [&] { done = 1000; }).ok());
    gate.Set();
  }
  EXPECT_EQ(done, 4);
}

TEST_F(ProgramCacheTest, WhatNobodyWaitsForIsDropped) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  Event started, gate;
  cache.GetOrCompile(
      Key("first"),
      [&]() -> absl::StatusOr<CompiledProgramPtr> {
        started.Set();
        gate.Wait();
        return ProgramOf(10);
      },
      Done());
  started.Wait();
  const auto held = std::make_shared<int>();
  const ProgramCache::LeaveFn leave = cache.GetOrCompile(
      Key("a"), [held] { return MustNotCompile(); }, Done());
  const ProgramCache::LeaveFn joined = cache.GetOrCompile(Key("a"), MustNotCompile, Done());
  leave();
  leave();
  EXPECT_EQ(pool.stats().queued, 1) << "one still waits";
  joined();
  EXPECT_EQ(pool.stats().queued, 0);
  EXPECT_EQ(held.use_count(), 1) << "and all that it held is gone";
  EXPECT_EQ(cache.stats().abandoned, 1);
  gate.Set();
  EXPECT_EQ(answers_.WaitFor(1).size(), 1u);
  EXPECT_EQ(Get(&cache, "a", ProgramOf(10)).source, Source::kCompiled);
}

TEST_F(ProgramCacheTest, WhatNobodyWaitsForIsBrokenOff) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20, .refused = {.keep = absl::Hours(1)}}, &pool);
  Event started;
  const auto until_interrupted = [&]() -> absl::StatusOr<CompiledProgramPtr> {
    started.Set();
    while (!StopRequested()) std::this_thread::yield();
    return CheckStopped();
  };
  const ProgramCache::LeaveFn leave = cache.GetOrCompile(Key("a"), until_interrupted, Done());
  started.Wait();
  leave();
  EXPECT_EQ(Get(&cache, "a", ProgramOf(10)).source, Source::kCompiled) << "and that is no refusal of the graph";
  EXPECT_EQ(answers_.size(), 1u);
  EXPECT_EQ(cache.stats().failed, 0);
}

TEST_F(ProgramCacheTest, WhoJoinedIsToldThoughTheFirstHasLeft) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  Event gate;
  const CompiledProgramPtr program = ProgramOf(10);
  const ProgramCache::LeaveFn leave = cache.GetOrCompile(
      Key("a"),
      [&]() -> absl::StatusOr<CompiledProgramPtr> {
        gate.Wait();
        return program;
      },
      Done());
  cache.GetOrCompile(Key("a"), MustNotCompile, Done());
  leave();
  gate.Set();
  const CacheAnswer answer = answers_.WaitFor(1)[0];
  EXPECT_EQ(answer.program, program);
  EXPECT_EQ(answer.source, Source::kJoined) << "it has the names of who left";
}

// A tenant's own compilation occupies its turn; what it asked for next is another's wish too.
TEST_F(ProgramCacheTest, WhoJoinsDoesNotWaitInAnothersQueue) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  Event started, gate;
  const CompiledProgramPtr program = ProgramOf(10);
  cache.GetOrCompile(
      Key("long"),
      [&]() -> absl::StatusOr<CompiledProgramPtr> {
        started.Set();
        gate.Wait();
        return ProgramOf(10);
      },
      Done(), nullptr, "first");
  started.Wait();
  cache.GetOrCompile(
      Key("a"), [&] { return program; }, Done(), nullptr, "first");
  cache.FindOrRestore(
      Key("b").fingerprint,
      [&]() -> absl::StatusOr<ProgramCache::Restored> {
        return ProgramCache::Restored{.key = Key("b"), .program = program};
      },
      Done(), "first");
  EXPECT_EQ(pool.stats().queued, 2);
  cache.GetOrCompile(Key("a"), MustNotCompile, Done(), nullptr, "second");
  cache.FindOrRestore(
      Key("b").fingerprint, []() -> absl::StatusOr<ProgramCache::Restored> { return MustNotCompile().status(); },
      Done(), "second");
  for (const CacheAnswer& answer : answers_.WaitFor(4)) EXPECT_EQ(answer.program, program) << answer.reason;
  EXPECT_EQ(pool.stats().queued, 0) << "nor does it wait where it is not needed any more";
  gate.Set();
  EXPECT_EQ(answers_.WaitFor(5).size(), 5u);
}

TEST_F(ProgramCacheTest, RestoringIsDroppedToo) {
  CompilePool pool(1, 10);
  ProgramCache cache({.max_bytes = 1 << 20}, &pool);
  Event started;
  const CompiledProgramPtr too_late = ProgramOf(10);
  const Fingerprint fingerprint = Key("a").fingerprint;
  const ProgramCache::LeaveFn leave = cache.FindOrRestore(
      fingerprint,
      [&]() -> absl::StatusOr<ProgramCache::Restored> {
        started.Set();
        while (!StopRequested()) std::this_thread::yield();
        return ProgramCache::Restored{.key = Key("a"), .program = too_late};
      },
      Done());
  const ProgramCache::LeaveFn joined = cache.FindOrRestore(
      fingerprint, []() -> absl::StatusOr<ProgramCache::Restored> { return MustNotCompile().status(); }, Done());
  started.Wait();
  leave();
  joined();
  cache.FindOrRestore(
      fingerprint,
      [&]() -> absl::StatusOr<ProgramCache::Restored> {
        return ProgramCache::Restored{.key = Key("a"), .program = ProgramOf(20)};
      },
      Done());
  EXPECT_EQ(answers_.WaitFor(1)[0].source, Source::kDisk);
  EXPECT_EQ(answers_.size(), 1u);
}

}  // namespace
}  // namespace tensord
