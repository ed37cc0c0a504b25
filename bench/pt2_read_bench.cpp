// Reading a `.pt2` into the IR, against simdjson alone parsing the same JSON. Both in one run, so
// that the machine's speed cancels out; the bound is 3x.
//
//   CHUTE_BENCH_PT2=out470.pt2 pt2_read_bench
//
// Counters: `ratio` (read over parse, in processor time), `rss_mb` (the process's peak),
// `ns_per_node`.

#include "aten/ops.h"
#include "pt2/reader.h"
#include "pt2/zip.h"

#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <simdjson.h>
#include <sys/resource.h>

namespace {

using namespace chute;
using Clock = std::chrono::steady_clock;

/// Time of all threads of this process: other load on the machine does not count.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

const char *input() { return std::getenv("CHUTE_BENCH_PT2"); }

double peak_rss_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Reads with `threads`; false on failure. The time includes opening the file and freeing the
/// graph.
bool read_once(unsigned threads, pt2::Summary &summary) {
  aten::register_dialect();
  ir::Context ctx;
  Diagnostics diagnostics;
  pt2::ReadOptions options;
  options.threads = threads;
  return pt2::read(ctx, input(), diagnostics, options, &summary).has_value();
}

void read_program(benchmark::State &state) {
  if (!input()) {
    state.SkipWithError("set CHUTE_BENCH_PT2 to a .pt2 file");
    return;
  }
  pt2::Summary summary;
  double total = 0;
  for (auto _ : state) {
    const auto start = Clock::now();
    if (!read_once(static_cast<unsigned>(state.range(0)), summary)) {
      state.SkipWithError("the file can not be read");
      return;
    }
    total += seconds_since(start);
  }
  const auto n = static_cast<double>(state.iterations());
  state.counters["rss_mb"] = peak_rss_mb();
  state.counters["ns_per_node"] = total / n / static_cast<double>(summary.nodes) * 1e9;
  state.SetBytesProcessed(static_cast<i64>(summary.json_bytes) * state.iterations());
}

/// One parse by simdjson's DOM and one read per iteration, each from a fresh mapping.
void read_over_parse(benchmark::State &state) {
  if (!input()) {
    state.SkipWithError("set CHUTE_BENCH_PT2 to a .pt2 file");
    return;
  }
  double parse = 0, read = 0;
  pt2::Summary summary;
  for (auto _ : state) {
    double start = cpu_seconds();
    if (!read_once(static_cast<unsigned>(state.range(0)), summary)) {
      state.SkipWithError("the file can not be read");
      return;
    }
    read += cpu_seconds() - start;
    const auto file = MappedFile::open(input());
    const auto zip = file ? pt2::Zip::open((*file)->bytes(), *file) : pt2::Zip::open({}, nullptr);
    std::optional<std::string_view> json;
    if (zip)
      for (const pt2::ZipEntry &e : zip->entries())
        if (e.name.ends_with("models/" + summary.model + ".json"))
          json = zip->read(e, false)->text();
    start = cpu_seconds();
    simdjson::dom::parser parser;
    simdjson::dom::element root;
    // The bytes behind the member are the padding.
    if (!json || parser.parse(json->data(), json->size(), false).get(root)) {
      state.SkipWithError("simdjson can not parse the file");
      return;
    }
    benchmark::DoNotOptimize(root);
    parse += cpu_seconds() - start;
  }
  const auto n = static_cast<double>(state.iterations());
  state.counters["parse_ms"] = parse / n * 1e3;
  state.counters["read_ms"] = read / n * 1e3;
  state.counters["ratio"] = read / parse;
}

// The read comes first: the DOM would raise the peak.
BENCHMARK(read_program)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(read_over_parse)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

} // namespace
