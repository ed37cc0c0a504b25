// fold-constants: evaluates pure operators whose operands are all constants.
//
//   %a = core.constant …   %b = aten.permute.default(%a)   →   %b = core.constant …
//
// One walk in SSA order: operands are folded before their users, so chains fold in one go. Equal
// expressions over the same constants are evaluated once and share one constant. Results that hold
// one value everywhere become stride-0 views of one element.
//
// Left alone: random operators, regions, quantization operators and arithmetic on quantized types
// (how a value is stored is information), symbolic shapes, weights without data, operators without
// a kernel or whose kernel reports an error (the program may never reach them).
//
// Growth: folding may make a file larger (expand, full, comparison masks). The pass adds up the
// bytes of the constants it makes, less those that die with the operators it removes. Up to the
// allowance, which is (fold_growth_limit - 1) times the bytes of the constants then present and at
// least 1 MiB, anything folds; beyond it only what does not grow the file. Creation and movement
// operators that make more than 64 KiB out of less stay: the runtime does them for free.
//
// Settings: fold_growth_limit (a factor, default 1.1; 1 never grows beyond the fixed megabyte).
// fold_profile: `basic` (default), or `heavy`, which also turns DEQUANTIZE of constants into reals,
// for runtimes that would do it at every run: up to 16 MiB for each and 256 MiB in all.
#include "circle/ops.h"
#include "eval/evaluator.h"
#include "eval/kernel.h"
#include "ir/builder.h"
#include "ir/walk.h"
#include "pass/pass.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

namespace chute::eval {

namespace {

using ir::Op;

constexpr i64 kFloor = i64{1} << 20;
constexpr i64 kSmall = i64{64} << 10;
constexpr i64 kHeavyEach = i64{16} << 20;
constexpr i64 kHeavyTotal = i64{256} << 20;

/// The constant that a value is, or null.
const ir::Constant *constant_of(const ir::Value *v) {
  const Op *producer = v ? v->producer() : nullptr;
  return producer && producer->has(ir::trait::kConstant) ? producer->attr("value").as_constant()
                                                         : nullptr;
}

/// Saturated bytes of a static tensor type.
i64 bytes_of(ir::Type t) {
  i64 bytes = 0;
  if (__builtin_mul_overflow(t.num_elements(), static_cast<i64>(ir::element_bytes(t.element())),
                             &bytes))
    return std::numeric_limits<i64>::max();
  return bytes;
}

class Folder {
public:
  explicit Folder(pass::PassContext &ctx) : ctx_(ctx), graph_(ctx.graph) {}

  void run() {
    if (!read_profile())
      return;
    ir::walk(graph_, [&](Op &op) {
      ++ctx_.counters.ops_visited;
      if (!wanted(op) || (ctx_.rewrite.used && *ctx_.rewrite.used >= ctx_.rewrite.rewrite_limit))
        return true;
      const std::vector<const ir::Constant *> *results = fold(op);
      if (!results)
        return true;
      replace(op, *results);
      return false;
    });
  }

private:
  bool read_profile() {
    const auto it = ctx_.settings.find("fold_profile");
    heavy_ = it != ctx_.settings.end() && it->second == "heavy";
    if (heavy_ || it == ctx_.settings.end() || it->second == "basic")
      return true;
    refuse("fold_profile", it->second, "give `basic` or `heavy`");
    return false;
  }

  void refuse(const std::string &setting, const std::string &value, std::string hint) {
    Diagnostic d;
    d.kind = ErrorKind::Usage;
    d.code = "pass.setting";
    d.message = setting + " is '" + value + "'";
    d.hint = std::move(hint);
    ctx_.diagnostics.add(std::move(d));
  }

  /// DEQUANTIZE of a stored constant, in the heavy profile. How the value is stored is lost.
  bool is_heavy(const Op &op) const {
    if (!heavy_ || op.opcode() != circle::op::DEQUANTIZE || op.num_results() != 1)
      return false;
    const ir::Type t = op.result()->type();
    return t.element() == ir::ElementType::F32 && !t.quant();
  }

  /// What the file may grow by.
  i64 allowance() {
    if (heavy_)
      return kHeavyTotal;
    double factor = 1.1;
    if (const auto it = ctx_.settings.find("fold_growth_limit"); it != ctx_.settings.end()) {
      char *end = nullptr;
      factor = std::strtod(it->second.c_str(), &end);
      if (it->second.empty() || *end || !(factor >= 1)) {
        refuse("fold_growth_limit", it->second,
               "give a factor of at least 1, for example --set fold_growth_limit=1.5");
        factor = 1;
      }
    }
    double bytes = 0;
    std::vector<bool> seen(graph_.constants().size());
    ir::walk(graph_, [&](Op &op) {
      if (!op.has(ir::trait::kConstant))
        return;
      const ir::Constant *c = op.attr("value").as_constant();
      if (c->has_data && !seen[c->id]) {
        seen[c->id] = true;
        bytes += static_cast<double>(c->dense_bytes());
      }
    });
    return std::max(kFloor, static_cast<i64>(std::min((factor - 1) * bytes, 1e18)));
  }

  /// Everything that can be decided without looking at data.
  bool wanted(const Op &op) {
    constexpr ir::trait::Set kNever = ir::trait::kRandom | ir::trait::kConstant |
                                      ir::trait::kEffect | ir::trait::kInPlace | ir::trait::kCheck |
                                      ir::trait::kQuantization | ir::trait::kTerminator;
    // Nearly every operator has an operand that is computed: that is seen first, and cheaply.
    for (const ir::Use &u : op.operand_uses())
      if (u.value() &&
          (!u.value()->producer() || !u.value()->producer()->has(ir::trait::kConstant)))
        return false;
    const ir::OpDef &def = op.def();
    const bool heavy = is_heavy(op);
    if (!(def.traits & ir::trait::kPure) || (!heavy && (def.traits & kNever)) || op.num_regions() ||
        op.num_results() == 0 || !KernelTable::global().find(op.opcode()))
      return false;
    const bool moves = def.has(ir::trait::kMovement) || heavy;
    for (const ir::Use &u : op.operand_uses()) {
      const ir::Constant *c = constant_of(u.value());
      if (u.value() && (!c || !c->has_data || (c->type.quant() && !moves)))
        return false;
    }
    bool used = false;
    for (const ir::Value &v : op.results()) {
      if (!v.type().is_tensor() || !v.type().has_static_shape() || (v.type().quant() && !moves))
        return false;
      used = used || v.has_uses();
    }
    for (const ir::Attr a : op.attrs()) {
      if (a.kind() == ir::AttrKind::Int && a.as_int().is_symbolic())
        return false;
      if (a.kind() == ir::AttrKind::Ints)
        for (const ir::SymInt v : a.as_ints())
          if (v.is_symbolic())
            return false;
    }
    return used && affordable(op);
  }

  /// Bytes that the file gains, less those that nothing else needs afterwards.
  i64 growth(const Op &op) const {
    i64 bytes = 0;
    for (const ir::Value &v : op.results())
      if (v.has_uses() && __builtin_add_overflow(bytes, bytes_of(v.type()), &bytes))
        return std::numeric_limits<i64>::max();
    for (const ir::Use &u : op.operand_uses()) {
      const ir::Value *v = u.value();
      if (!v || !used_only_by(*v, op))
        continue;
      // Named twice as an operand, it dies once.
      bool first = true;
      for (const ir::Use &other : op.operand_uses()) {
        if (&other == &u)
          break;
        first = first && other.value() != v;
      }
      if (first)
        bytes -= static_cast<i64>(constant_of(v)->dense_bytes());
    }
    return bytes;
  }
  static bool used_only_by(const ir::Value &v, const Op &op) {
    // Looks at no more uses than the operator has operands.
    for (const ir::Use *u = v.first_use(); u; u = u->next())
      if (u->owner() != &op)
        return false;
    return true;
  }

  bool affordable(const Op &op) {
    const i64 more = growth(op);
    if (more <= 0)
      return true;
    if (heavy_ && more > kHeavyEach)
      return false;
    const bool cheap_at_run_time = op.has(ir::trait::kMovement) || op.num_operands() == 0;
    if (cheap_at_run_time && more > kSmall)
      return false;
    if (allowance_ < 0)
      allowance_ = allowance();
    i64 total = 0;
    return !__builtin_add_overflow(grown_, more, &total) && total <= allowance_;
  }

  // --- evaluation ------------------------------------------------------------------------------
  struct Memo {
    ir::OpCode opcode;
    std::vector<const ir::Constant *> operands;
    std::vector<ir::Attr> attrs;
    std::vector<ir::Type> types;
    std::vector<const ir::Constant *> results; ///< empty: it does not evaluate
    bool operator==(const Memo &o) const {
      return opcode == o.opcode && operands == o.operands && attrs == o.attrs && types == o.types;
    }
  };
  static u64 hash(const Memo &m) {
    u64 h = ir::index(m.opcode);
    const auto mix = [&](u64 v) { h = (h ^ v) * 0x9E3779B97F4A7C15ull ^ h >> 29; };
    for (const ir::Constant *c : m.operands)
      mix(c ? c->id + 1 : 0);
    for (const ir::Attr a : m.attrs)
      mix(a.payload() + static_cast<u64>(a.kind()));
    for (const ir::Type t : m.types)
      mix(t.id());
    return h;
  }

  /// The constants of the results, or null when the operator stays.
  const std::vector<const ir::Constant *> *fold(const Op &op) {
    Memo m;
    m.opcode = op.opcode();
    for (const ir::Use &u : op.operand_uses())
      m.operands.push_back(constant_of(u.value()));
    m.attrs.assign(op.attrs().begin(), op.attrs().end());
    for (const ir::Value &v : op.results())
      m.types.push_back(v.type());
    const u64 h = hash(m);
    const auto [first, last] = memo_.equal_range(h);
    for (auto it = first; it != last; ++it)
      if (it->second == m)
        return it->second.results.empty() ? nullptr : &it->second.results;
    evaluate_into(op, m);
    const auto it = memo_.emplace(h, std::move(m));
    return it->second.results.empty() ? nullptr : &it->second.results;
  }

  void evaluate_into(const Op &op, Memo &m) {
    std::vector<Tensor> tensors(m.operands.size());
    std::vector<const Tensor *> operands(m.operands.size(), nullptr);
    for (size_t i = 0; i < m.operands.size(); ++i)
      if (m.operands[i]) {
        tensors[i] = Tensor::of_constant(*m.operands[i]);
        operands[i] = &tensors[i];
      }
    const auto results = evaluate_op(graph_, op, operands);
    if (!results)
      return;
    for (u32 i = 0; i < op.num_results(); ++i) {
      const ir::Value &v = *op.result(i);
      m.results.push_back(v.has_uses() ? add(v.type(), (*results)[i]) : nullptr);
    }
  }

  /// A constant that views the tensor's bytes; of one element when all are equal.
  const ir::Constant *add(ir::Type type, const Tensor &t) {
    const size_t item = t.item_bytes();
    const size_t bytes = t.num_bytes();
    if (t.num_elements() > 1 && std::memcmp(t.data(), t.data() + item, bytes - item) == 0) {
      const std::vector<i64> strides(static_cast<size_t>(t.rank()), 0);
      Tensor one = Tensor::allocate(t.element(), {});
      std::memcpy(one.mutable_data(), t.data(), item);
      ctx_.counters.bytes_copied += item;
      return graph_.add_constant(type, one.data(), one.owner(), strides);
    }
    ctx_.counters.bytes_copied += bytes;
    return graph_.add_constant(type, t.data(), t.owner());
  }

  void replace(Op &op, const std::vector<const ir::Constant *> &results) {
    grown_ += growth(op);
    ir::Builder b(graph_, *op.parent(), &op);
    b.set_loc(op.loc());
    for (u32 i = 0; i < op.num_results(); ++i) {
      ir::Value *result = op.result(i);
      if (!result->has_uses())
        continue;
      ir::Value *constant = b.constant(results[i], result->name());
      graph_.set_type(constant, result->type());
      graph_.replace_all_uses(result, constant);
    }
    // Constants that only this operator used go with it.
    std::vector<ir::Value *> operands;
    for (const ir::Use &u : op.operand_uses())
      if (u.value())
        operands.push_back(u.value());
    graph_.erase(&op);
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool seen = std::find(operands.begin(), operands.begin() + static_cast<i64>(i),
                                  operands[i]) != operands.begin() + static_cast<i64>(i);
      if (!seen && !operands[i]->has_uses())
        graph_.erase(operands[i]->producer());
    }
    ++ctx_.counters.rewrites;
    if (ctx_.rewrite.used)
      ++*ctx_.rewrite.used;
  }

  pass::PassContext &ctx_;
  ir::Graph &graph_;
  i64 allowance_ = -1; // measured when the first candidate would make the file larger
  i64 grown_ = 0;
  bool heavy_ = false;
  std::unordered_multimap<u64, Memo> memo_; // looked up only
};

} // namespace

void fold_constants(pass::PassContext &ctx) { Folder(ctx).run(); }

} // namespace chute::eval
