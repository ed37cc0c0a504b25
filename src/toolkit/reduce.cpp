#include "toolkit/reduce.h"

#include "circle/reader.h"
#include "circle/writer.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "ir/walk.h"
#include "toolkit/cleanup.h"
#include "toolkit/extract.h"
#include "toolkit/model.h"
#include "toolkit/shrink.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_set.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chute::toolkit {

namespace {

using ir::Op;
using ir::Value;
using Bytes = std::vector<std::byte>;

/// Constants smaller than this stay constants: shapes, axes, scalars.
constexpr size_t kSmallConstant = 256;

bool all_zero(const ir::Constant &c) {
  if (!c.has_data || c.num_elements() == 0)
    return true;
  const auto size = static_cast<size_t>(ir::element_bytes(c.type.element()));
  const bool splat = std::all_of(c.strides.begin(), c.strides.end(), [](i64 s) { return s == 0; });
  const size_t reachable = c.is_dense() ? c.dense_bytes() : size;
  return (c.is_dense() || splat) &&
         std::all_of(c.data, c.data + reachable, [](std::byte b) { return b == std::byte{0}; });
}

/// A program in its own Context, so that thousands of candidates leave nothing behind.
struct Subject {
  ir::Context ctx;
  circle::Model model;
};

class Reducer {
public:
  Reducer(std::span<const std::byte> bytes, const ReduceOptions &options)
      : options_(options), best_(bytes.begin(), bytes.end()) {}

  Result<ReduceReport> run() {
    auto start = open(best_);
    if (!start)
      return tl::unexpected(std::move(start.error()));
    size_ = size_of(**start, best_);
    report_.before = size_;
    auto shows = test(best_);
    if (!shows)
      return tl::unexpected(std::move(shows.error()));
    if (!*shows)
      return fail(ErrorKind::Failure, "toolkit.reduce.test",
                  "the test says no to the program as it came", {},
                  "the command has to exit with 0 while the program shows what you look for");
    const auto everything = {&Reducer::drop_extras, &Reducer::outputs, &Reducer::ranges,
                             &Reducer::bypass,      &Reducer::shapes,  &Reducer::zeros,
                             &Reducer::inputs};
    for (bool progress = true; progress && !stopped_;) {
      const u64 accepted = report_.accepted;
      for (const auto phase : everything)
        if (!stopped_)
          (this->*phase)();
      progress = report_.accepted > accepted;
    }
    if (failure_)
      return tl::unexpected(std::move(*failure_));
    report_.after = size_;
    report_.bytes = std::move(best_);
    return std::move(report_);
  }

private:
  Result<std::unique_ptr<Subject>> open(std::span<const std::byte> bytes) const {
    auto out = std::make_unique<Subject>();
    if (options_.text) {
      auto graph =
          ir::parse(out->ctx, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
      if (!graph)
        return tl::unexpected(std::move(graph.error()));
      out->model.graph = std::move(*graph);
      return out;
    }
    auto model = circle::read_model(out->ctx, bytes, nullptr);
    if (!model)
      return tl::unexpected(std::move(model.error()));
    out->model = std::move(*model);
    return out;
  }

  Result<Bytes> pack(Subject &s) const {
    Diagnostics findings;
    ir::verify(*s.model.graph, findings);
    if (findings.has_errors())
      return tl::unexpected<Diagnostic>(findings.all().front());
    if (!options_.text) {
      keep_one_graph(s.model);
      circle::ModelWriteOptions options;
      options.compact = true;
      return circle::write_model_bytes(s.model, options);
    }
    const std::string text = ir::print(*s.model.graph);
    const auto bytes = std::as_bytes(std::span(text));
    return Bytes(bytes.begin(), bytes.end());
  }

  static ReduceSize size_of(const Subject &s, std::span<const std::byte> bytes) {
    ReduceSize out;
    ir::walk(static_cast<const ir::Graph &>(*s.model.graph), [&](const Op &op) {
      if (op.has(ir::trait::kConstant)) {
        const ir::Constant &c = *op.attr(0u).as_constant();
        if (!all_zero(c))
          out.constant_bytes += c.dense_bytes();
      } else if (!op.has(ir::trait::kTerminator)) {
        ++out.operators;
      }
    });
    out.outputs = s.model.graph->outputs().size();
    out.elements = count_elements(*s.model.graph);
    out.bytes = bytes.size();
    return out;
  }

  Result<bool> test(const Bytes &bytes) {
    ++report_.tests;
    return options_.test(bytes);
  }

  /// Applies `edit` to the best program so far and keeps the result when it is smaller and still
  /// shows what is looked for.
  template <class Edit>
  bool attempt(Edit &&edit) {
    if (stopped_)
      return false;
    auto subject = open(best_);
    if (!subject || !edit((*subject)->model))
      return false;
    auto bytes = pack(**subject);
    if (!bytes)
      return false;
    const ReduceSize size = size_of(**subject, *bytes);
    const XXH128_hash_t hash = XXH3_128bits(bytes->data(), bytes->size());
    if (size >= size_ || !tried_.insert({hash.low64, hash.high64}).second)
      return false;
    if (report_.tests >= options_.most_tests) {
      report_.exhausted = stopped_ = true;
      return false;
    }
    auto shows = test(*bytes);
    if (shows && *shows) {
      ++report_.accepted;
      best_ = std::move(*bytes);
      size_ = size;
      if (options_.on_smaller)
        if (Status s = options_.on_smaller(best_, size_); !s)
          stop(std::move(s.error()));
      return true;
    }
    if (!shows)
      stop(std::move(shows.error()));
    return false;
  }
  void stop(Diagnostic d) {
    stopped_ = true;
    failure_ = std::move(d);
  }

  /// Tries to take away ever smaller runs of `count()` things, `remove(first, end)` at a time.
  template <class Count, class Remove>
  void minimize(Count &&count, Remove &&remove, bool down_to_one = true) {
    for (size_t chunk = std::max<size_t>(count(), 1); chunk > 0;
         chunk = chunk == 1 ? 0 : (chunk + 1) / 2) {
      // From the back, so that what has not been tried keeps its place.
      for (size_t end = count(); end > 0 && !stopped_;) {
        const size_t first = end > chunk ? end - chunk : 0;
        remove(first, end);
        end = std::min(first, count());
      }
      if (chunk == 1 || (!down_to_one && chunk <= 2))
        return;
    }
  }

  template <class Visit>
  auto look(Visit &&visit) {
    auto subject = open(best_);
    using Out = decltype(visit((*subject)->model));
    return subject ? visit((*subject)->model) : Out();
  }

  // --- the ways to be smaller
  // ---------------------------------------------------------------------

  void drop_extras() {
    attempt([](circle::Model &m) {
      const bool any = !m.metadata.empty() || !m.more.empty();
      m.metadata.clear();
      m.more.clear();
      return any;
    });
    attempt([](circle::Model &m) {
      CleanupOptions options;
      options.prune_inputs = true;
      return cleanup(*m.graph, options).has_value();
    });
  }

  void outputs() {
    minimize([&] { return look([](circle::Model &m) { return m.graph->outputs().size(); }); },
             [&](size_t first, size_t end) {
               attempt([&](circle::Model &m) { return drop_outputs(*m.graph, first, end); });
             });
  }

  static bool drop_outputs(ir::Graph &graph, size_t first, size_t end) {
    Op *ret = graph.return_op();
    if (!ret || end - first >= graph.outputs().size())
      return false;
    std::vector<ir::OutputInfo> kept;
    std::vector<Value *> values;
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      if (i >= first && i < end)
        continue;
      ir::OutputInfo info = graph.outputs()[i];
      if (info.operand >= 0) {
        values.push_back(ret->operand(static_cast<u32>(info.operand)));
        info.operand = static_cast<i32>(values.size() - 1);
      }
      kept.push_back(std::move(info));
    }
    graph.erase(ret);
    graph.append(graph.body(), graph.create(ir::core_op::ret, values, {}, {}));
    graph.outputs() = std::move(kept);
    return cleanup(graph).has_value();
  }

  size_t count_ops() {
    return look([](circle::Model &m) { return numbered_ops(*m.graph).size(); });
  }

  void ranges() {
    const auto keep = [&](const std::string &ops) {
      return attempt([&](circle::Model &m) {
        Selection s;
        s.ops = ops;
        return extract(*m.graph, s).has_value();
      });
    };
    const auto range = [](size_t first, size_t end) {
      return first < end ? std::to_string(first) + "-" + std::to_string(end - 1) : std::string();
    };
    // One half or the other, while that goes; then ever smaller runs in the middle.
    for (size_t n = count_ops(); n > 1; n = count_ops())
      if (!keep(range(0, n / 2)) && !keep(range(n / 2, n)))
        break;
    minimize([&] { return count_ops(); },
             [&](size_t first, size_t end) {
               const std::string before = range(0, first), after = range(end, count_ops());
               if (!before.empty() || !after.empty())
                 keep(before + (before.empty() || after.empty() ? "" : ",") + after);
             });
  }

  /// A result becomes one of the operands, where the types allow it.
  void bypass() {
    for (size_t i = count_ops(); i-- > 0 && !stopped_;)
      for (u32 k = 0; k < 2; ++k)
        if (attempt([&](circle::Model &m) {
              const std::vector<Op *> ops = numbered_ops(*m.graph);
              if (i >= ops.size() || ops[i]->num_results() != 1 || k >= ops[i]->num_operands())
                return false;
              Op *op = ops[i];
              Value *from = op->result(), *to = op->operand(k);
              if (!to || !(to->type() == from->type()))
                return false;
              m.graph->replace_all_uses(from, to);
              m.graph->erase(op);
              return cleanup(*m.graph).has_value();
            }))
          break;
  }

  /// Every size of a dimension as small as the fault allows: 1, 2, then half of it.
  void shapes() {
    for (const i64 from : look([](circle::Model &m) { return extents(*m.graph); }))
      for (i64 size = from; size > 1 && !stopped_;) {
        i64 now = 0;
        for (const i64 to : {i64{1}, i64{2}, size / 2})
          if (to < size && attempt([&](circle::Model &m) {
                return shrink_extent(*m.graph, size, to) && cleanup(*m.graph).has_value();
              })) {
            now = to;
            break;
          }
        if (now == 0)
          break;
        size = now;
      }
  }

  static std::vector<Op *> constants(ir::Graph &graph) {
    std::vector<Op *> out;
    for (Op &op : graph.body())
      if (op.opcode() == ir::core_op::constant && !all_zero(*op.attr(0u).as_constant()))
        out.push_back(&op);
    return out;
  }

  void zeros() {
    minimize([&] { return look([](circle::Model &m) { return constants(*m.graph).size(); }); },
             [&](size_t first, size_t end) {
               attempt([&](circle::Model &m) {
                 const std::vector<Op *> list = constants(*m.graph);
                 for (size_t i = first; i < end && i < list.size(); ++i) {
                   const ir::Type type = list[i]->attr(0u).as_constant()->type;
                   std::byte *bytes = nullptr;
                   const ir::Constant *zero = m.graph->add_buffer(type, &bytes);
                   m.graph->set_attr(list[i], 0, ir::Attr::of_constant(zero));
                 }
                 return first < list.size();
               });
             });
  }

  static std::vector<Op *> large_constants(ir::Graph &graph) {
    std::vector<Op *> out;
    for (Op &op : graph.body())
      if (op.opcode() == ir::core_op::constant &&
          op.attr(0u).as_constant()->dense_bytes() >= kSmallConstant)
        out.push_back(&op);
    return out;
  }

  /// Constants become inputs, so that their bytes need not be in the file.
  void inputs() {
    minimize(
        [&] { return look([](circle::Model &m) { return large_constants(*m.graph).size(); }); },
        [&](size_t first, size_t end) {
          attempt([&](circle::Model &m) {
            ir::Graph &graph = *m.graph;
            const std::vector<Op *> list = large_constants(graph);
            for (size_t i = first; i < end && i < list.size(); ++i) {
              Value *value = list[i]->result();
              Value *arg = graph.add_argument(graph.body(), value->type(), value->name());
              graph.replace_all_uses(value, arg);
              ir::InputInfo info;
              info.name = graph.context().string(value->name());
              if (info.name.empty())
                info.name = "constant" + std::to_string(i);
              info.value = arg;
              graph.inputs().push_back(std::move(info));
              graph.erase(list[i]);
            }
            return first < list.size();
          });
        });
  }

  const ReduceOptions &options_;
  ReduceReport report_;
  Bytes best_;
  ReduceSize size_;
  bool stopped_ = false;
  std::optional<Diagnostic> failure_;
  boost::unordered_flat_set<std::pair<u64, u64>> tried_;
};

} // namespace

Result<ReduceReport> reduce(std::span<const std::byte> bytes, const ReduceOptions &options) {
  return Reducer(bytes, options).run();
}

} // namespace chute::toolkit
