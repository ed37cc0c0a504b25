#include "circle/verify.h"

#include "circle/infer_support.h"
#include "circle/quant_check.h"
#include "circle/subgraph_reader.h"
#include "ir/context.h"
#include "support/mapped_file.h"

namespace chute::circle {

namespace {

namespace cs = ::circle;

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

std::string show(ir::Type t, const ir::SymTable &sym) {
  return std::string(ir::element_type_name(t.element())) + to_string(t.shape(), sym);
}

/// Compares what is declared with what operands and options say.
class ContractChecker {
public:
  ContractChecker(const FileView &file, const VerifyOptions &options, Diagnostics &out)
      : file_(file), options_(options), out_(out) {}

  u64 contracts() const { return contracts_; }

  void run() {
    ir::Context ctx;
    OpSignatures signatures(file_);
    KeySet clean;
    for (u32 s = 0; s < file_.model->subgraphs()->size() && !full(); ++s) {
      // Bytes outlive the graph: no owner is needed.
      ir::Graph graph(ctx);
      FileReader reader(file_, {}, graph);
      subgraph_ = s;
      path_ = "model.subgraphs[" + std::to_string(s) + "]";
      const ContractCheck contract = [&](u32 o, const ir::Op &op, const Status &status,
                                         std::span<const ir::Type> expected) {
        const size_t before = out_.all().size();
        ++contracts_;
        check(o, op, status, expected, ctx.sym());
        check_calls(o, op, *file_.model->subgraphs()->Get(s)->operators()->Get(o));
        return out_.all().size() == before;
      };
      const Status read = signatures.enter(s)
                              ? check_kinds(reader, s, contract, signatures, clean)
                              : read_subgraph(reader, s, graph.body(), {}, contract);
      check_quantization(s);
      if (!read) {
        Diagnostic d = read.error();
        // Not being able to read something is no fault of the file.
        if (d.kind == ErrorKind::Unsupported)
          d.severity = Severity::Note;
        d.object = path_ + "." + d.object;
        out_.add(std::move(d));
      }
    }
  }

private:
  void check_quantization(u32 s) {
    const cs::SubGraph &sub = *file_.model->subgraphs()->Get(s);
    for (u32 o = 0; o < size_of(sub.operators()) && !full(); ++o) {
      const cs::Operator &op = *sub.operators()->Get(o);
      const auto code =
          from_wire(effective_code(*file_.model->operator_codes()->Get(op.opcode_index())));
      QuantFinding found = check_operator_quantization(sub, op, *code);
      if (found.message.empty())
        continue;
      Diagnostic d;
      d.severity = found.severity;
      d.code = "circle.operator.quantization";
      d.message = std::string(ir::Registry::global().def(*code).name) + ": " + found.message;
      d.object = path_ + ".operators[" + std::to_string(o) + "]" + found.part;
      out_.add(std::move(d));
    }
  }

  bool full() const { return out_.all().size() >= options_.max_findings; }

  void report(u32 o, std::string code, std::string message, std::string part = {}) {
    if (full())
      return;
    Diagnostic d;
    d.code = std::move(code);
    d.message = std::move(message);
    d.object = path_ + ".operators[" + std::to_string(o) + "]" + part;
    out_.add(std::move(d));
  }

  /// Quantized operators choose their storage: u8 or i16 results of i8 operands are legal.
  static bool same_element(ir::Type declared, ir::Type expected, const ir::Op &op) {
    if (declared.element() == expected.element())
      return true;
    if (op.has(ir::trait::kMovement))
      return false; // bytes are copied
    if (declared.quant())
      return true;
    for (u32 i = 0; i < op.num_operands(); ++i)
      if (op.operand(i) && op.operand(i)->type().is_tensor() && op.operand(i)->type().quant())
        return true;
    return false;
  }

  void check(u32 o, const ir::Op &op, const Status &status, std::span<const ir::Type> expected,
             const ir::SymTable &sym) {
    const std::string_view name = op.name();
    if (!status) {
      if (status.error().code != kUnknownCode)
        report(o, "circle.operator.contract", std::string(name) + ": " + status.error().message);
      return;
    }
    if (expected.size() != op.num_results()) {
      report(o, "circle.operator.contract",
             std::string(name) + ": has " + std::to_string(op.num_results()) +
                 " results where its options say " + std::to_string(expected.size()));
      return;
    }
    for (u32 i = 0; i < op.num_results(); ++i) {
      const ir::Type declared = op.result(i)->type();
      bool same = same_element(declared, expected[i], op) && declared.rank() == expected[i].rank();
      const auto *signature =
          tensor_signature(o, i); // -1 there: any size is right, whatever `shape` says
      for (int d = 0; same && d < declared.rank(); ++d)
        same = expected[i].dim(d).is_symbolic() || declared.dim(d) == expected[i].dim(d) ||
               (signature && signature->Get(static_cast<u32>(d)) == -1);
      if (!same)
        report(o, "circle.operator.contract",
               std::string(name) + ": declares " + show(declared, sym) +
                   " where operands and options give " + show(expected[i], sym),
               ".outputs[" + std::to_string(i) + "]");
    }
  }

  const flatbuffers::Vector<i32> *tensor_signature(u32 o, u32 result) const {
    const cs::SubGraph &sub = *file_.model->subgraphs()->Get(subgraph_);
    const i32 t = sub.operators()->Get(o)->outputs()->Get(result);
    const auto *signature = sub.tensors()->Get(static_cast<u32>(t))->shape_signature();
    return size_of(signature) ? signature : nullptr;
  }

  /// Subgraphs take and give as many tensors as the operator that calls them.
  void check_calls(u32 o, const ir::Op &op, const cs::Operator &in) {
    const bool is_if = op.opcode() == op::IF, is_while = op.opcode() == op::WHILE;
    if (!is_if && !is_while && op.opcode() != op::CALL)
      return;
    const OptionsDef &def = *wire(op.opcode()).options;
    const flatbuffers::Table *table = options_table(in, def);
    const u32 operands = op.num_operands() - (is_if ? 1 : 0);
    for (const Field &f : def.fields) {
      const auto slot = static_cast<flatbuffers::voffset_t>(4 + 2 * f.slot);
      const auto callee = static_cast<u32>(table ? table->GetField<i32>(slot, 0) : 0);
      const cs::SubGraph &sub = *file_.model->subgraphs()->Get(callee);
      const u32 results = is_while && f.name == "cond" ? 1 : op.num_results();
      if (size_of(sub.inputs()) != operands || size_of(sub.outputs()) != results)
        report(o, "circle.subgraph.interface",
               std::string(f.name) + " is subgraph " + std::to_string(callee) + " with " +
                   std::to_string(size_of(sub.inputs())) + " inputs and " +
                   std::to_string(size_of(sub.outputs())) + " outputs; the call needs " +
                   std::to_string(operands) + " and " + std::to_string(results));
    }
  }

  const FileView &file_;
  const VerifyOptions &options_;
  Diagnostics &out_;
  u32 subgraph_ = 0;
  u64 contracts_ = 0;
  std::string path_;
};

void count(const FileView &file, VerifyWork &work) {
  for (const cs::SubGraph *g : *file.model->subgraphs()) {
    work.tensors += size_of(g->tensors());
    work.operators += size_of(g->operators());
    for (u32 o = 0; o < size_of(g->operators()); ++o) {
      const cs::Operator &op = *g->operators()->Get(o);
      work.operands += size_of(op.inputs()) + size_of(op.outputs()) + size_of(op.intermediates());
    }
  }
}

} // namespace

void verify(std::span<const std::byte> bytes, Diagnostics &diagnostics,
            const VerifyOptions &options) {
  register_dialect();
  const auto copy = aligned_copy(bytes);
  auto file = open_view(bytes);
  if (!file) {
    diagnostics.add(file.error());
    return;
  }
  StructureOptions structure;
  structure.max_findings = options.max_findings;
  check_structure(*file, structure, diagnostics);
  for (const Diagnostic &d : diagnostics.all())
    if (d.severity == Severity::Error && d.kind == ErrorKind::BadInput)
      return; // no graph can be built from it
  if (options.work)
    count(*file, *options.work);
  if (!options.contracts)
    return;
  ContractChecker checker(*file, options, diagnostics);
  checker.run();
  if (options.work)
    options.work->contracts = checker.contracts();
}

void verify_file(const std::string &path, Diagnostics &diagnostics, const VerifyOptions &options) {
  auto file = MappedFile::open(path);
  if (!file) {
    diagnostics.add(file.error());
    return;
  }
  verify((*file)->bytes(), diagnostics, options);
}

} // namespace chute::circle
