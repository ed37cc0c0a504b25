#include "tosa/mlir.h"

#include "ir/context.h"
#include "ir/element_convert.h"
#include "support/output_file.h"
#include "tosa/infer.h"
#include "tosa/ops.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace chute::tosa {

namespace {

using ir::Attr;
using ir::ElementType;
using ir::Op;
using ir::Type;
using ir::Value;

constexpr size_t kFlushAt = size_t{1} << 20;
constexpr size_t kMostWrittenOut = 8; ///< elements of a constant that a reader can read

std::string_view element_name(ElementType e) {
  switch (e) {
  case ElementType::Bool: return "i1";
  case ElementType::I4: return "i4";
  case ElementType::I8: return "i8";
  case ElementType::U8: return "ui8";
  case ElementType::I16: return "i16";
  case ElementType::I32: return "i32";
  case ElementType::I48: return "i48";
  case ElementType::I64: return "i64";
  case ElementType::F16: return "f16";
  case ElementType::BF16: return "bf16";
  case ElementType::F32: return "f32";
  default: return {}; // 8-bit floats: LLVM 19 prints them, but its TOSA operators refuse them
  }
}

std::string type_name(ElementType e, const std::vector<i64> &dims) {
  std::string text = "tensor<";
  for (i64 d : dims)
    text += (d < 0 ? "?" : std::to_string(d)) + "x";
  return text + std::string(element_name(e)) + ">";
}

std::vector<i64> dims_of(Type t) {
  std::vector<i64> dims;
  for (ir::SymInt d : t.shape())
    dims.push_back(d.is_symbolic() ? -1 : d.value());
  return dims;
}

std::string type_name(Type t) { return type_name(t.element(), dims_of(t)); }

std::string array(std::string_view element, const std::vector<i64> &values) {
  return fmt::format("array<{}{}{}>", element, values.empty() ? "" : ": ", fmt::join(values, ", "));
}

/// A float literal; one that has no decimal form is its bits.
std::string number(ElementType e, double v) {
  if (!ir::is_float(e))
    return fmt::format("{}", static_cast<i64>(v));
  if (std::isfinite(v))
    return fmt::format("{:.9e}", v);
  std::byte bytes[8] = {};
  ir::store_element(e, v, bytes);
  std::string text = "0x";
  for (int i = ir::element_bytes(e); i-- > 0;)
    text += fmt::format("{:02X}", static_cast<u8>(bytes[i]));
  return text;
}

/// Operators whose name is not the identifier in lower case.
std::string_view mlir_name(const Op &op) {
  switch (ir::index(op.opcode()) - ir::kTosaBase) {
  case static_cast<u16>(OpIndex::INTDIV): return "tosa.int_div";
  case static_cast<u16>(OpIndex::REDUCE_PRODUCT): return "tosa.reduce_prod";
  default: return op.name();
  }
}

class Printer {
public:
  Printer(const ir::Graph &graph, const std::function<Status(std::string_view)> &sink)
      : graph_(graph), sink_(sink) {}

  Status print() {
    const ir::Region &body = graph_.body();
    std::string args;
    for (Value *v : body.args()) {
      names_[v] = fmt::format("%arg{}", names_.size());
      args += fmt::format("{}{}: {}", args.empty() ? "" : ", ", names_[v], type_name(v->type()));
    }
    std::string results;
    for (const ir::Use &u : body.back()->operand_uses())
      results += (results.empty() ? "" : ", ") + type_name(u.value()->type());
    text_ = fmt::format("module {{\n  func.func @main({}) -> ({}) {{\n", args, results);
    if (Status s = region(body, 2, "func.return"); !s)
      return s;
    text_ += "  }\n}\n";
    return sink_(text_);
  }

private:
  tl::unexpected<Diagnostic> unsupported(const Op &op, std::string why) const {
    return fail(ErrorKind::Unsupported, "tosa.mlir.operator", std::move(why),
                std::string(op.name()));
  }

  Status region(const ir::Region &r, int depth, std::string_view terminator) {
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    for (const Op &op : r) {
      if (op.opcode() == ir::core_op::constant)
        continue; // printed where they are used
      if (op.opcode() == ir::core_op::ret) {
        std::string values, types;
        for (const ir::Use &u : op.operand_uses()) {
          auto name = value(*u.value(), indent);
          if (!name)
            return tl::unexpected(name.error());
          values += (values.empty() ? "" : ", ") + *name;
          types += (types.empty() ? "" : ", ") + type_name(u.value()->type());
        }
        text_ += fmt::format("{}\"{}\"({}) : ({}) -> ()\n", indent, terminator, values, types);
      } else if (Status s = print_op(op, depth, indent); !s) {
        return s;
      }
      if (text_.size() > kFlushAt) {
        if (Status s = sink_(text_); !s)
          return s;
        text_.clear();
      }
    }
    return {};
  }

  /// The name of a value; a constant is printed before its first use in a region.
  Result<std::string> value(const Value &v, const std::string &indent) {
    const auto at = names_.find(&v);
    if (at != names_.end())
      return at->second;
    const Op *p = v.producer();
    if (!p || p->opcode() != ir::core_op::constant)
      return fail(ErrorKind::Unsupported, "tosa.mlir.operator", "a value has no definition",
                  std::string(p ? p->name() : "argument"));
    auto name = constant(*p->attr(0u).as_constant(), dims_of(v.type()), indent);
    // Regions of branches see the constants before them, but not those of each other.
    if (name && indent.size() == 4)
      names_[&v] = *name;
    return name;
  }

  Result<std::string> constant(const ir::Constant &c, const std::vector<i64> &dims,
                               const std::string &indent) {
    const ElementType e = c.type.element();
    if (element_name(e).empty())
      return fail(ErrorKind::Unsupported, "tosa.mlir.type",
                  "MLIR's dialect has no constants of type " +
                      std::string(ir::element_type_name(e)),
                  "core.constant");
    if (!c.has_data)
      return fail(ErrorKind::Unsupported, "tosa.mlir.no_data",
                  "a constant's bytes are not in the program", "core.constant");
    const std::string name = fmt::format("%{}", next_++);
    const std::string type = type_name(e, dims);
    text_ += fmt::format("{}{} = \"tosa.const\"() {{value = dense<", indent, name);
    dense(c);
    text_ += fmt::format("> : {}}} : () -> {}\n", type, type);
    return name;
  }

  void dense(const ir::Constant &c) {
    const ElementType e = c.type.element();
    const auto n = static_cast<size_t>(c.num_elements());
    const auto size = static_cast<size_t>(ir::element_bytes(e));
    std::vector<std::byte> bytes(c.dense_bytes());
    c.copy_dense(bytes.data());
    bool splat = n > 0;
    for (size_t i = 1; splat && i < n; ++i)
      splat = std::memcmp(bytes.data(), &bytes[i * size], size) == 0;
    const auto element = [&](size_t i) -> std::string {
      const std::byte *at = &bytes[i * size];
      if (e == ElementType::Bool)
        return at[0] == std::byte{0} ? "false" : "true";
      return ir::is_float(e) ? number(e, ir::load_element(e, at))
                             : std::to_string(ir::load_element_int(e, at));
    };
    if (splat) {
      text_ += element(0);
    } else if (n <= kMostWrittenOut || e == ElementType::Bool || e == ElementType::I48) {
      nested(dims_of(c.type), n, element);
    } else {
      constexpr char kDigits[] = "0123456789ABCDEF";
      text_ += "\"0x";
      for (std::byte b : bytes) {
        text_ += kDigits[static_cast<u8>(b) >> 4];
        text_ += kDigits[static_cast<u8>(b) & 15];
      }
      text_ += '"';
    }
  }

  template <class F>
  void nested(const std::vector<i64> &dims, size_t n, F &&element) {
    for (size_t i = 0; i < n; ++i) {
      size_t stride = 1;
      std::string open, close;
      for (size_t d = dims.size(); d-- > 0;) {
        stride *= static_cast<size_t>(dims[d]);
        open += i % stride == 0 ? "[" : "";
        close += (i + 1) % stride == 0 ? "]" : "";
      }
      text_ += (i ? ", " : "") + open + element(i) + close;
    }
    if (n == 0)
      text_ += "[]";
  }

  /// Operands that are attributes in this dialect, and those that stay.
  struct Form {
    std::vector<std::string> attrs;
    std::vector<u32> operands;
  };

  static std::optional<i64> zero_point(const Value *v) {
    const Op *p = v->producer();
    if (!p || p->opcode() != ir::core_op::constant)
      return {};
    const ir::Constant &c = *p->attr(0u).as_constant();
    if (ir::is_float(c.type.element()))
      return 0;
    const auto list = constant_ints(v);
    return list && list->size() == 1 ? std::optional((*list)[0]) : std::nullopt;
  }

  /// "quantization_info = #tosa.conv_quant<input_zp = 1, weight_zp = 0>" unless all are zero.
  static bool quantization(const Op &op, u32 first, std::string_view kind,
                           std::initializer_list<std::string_view> names, Form &form) {
    std::string text;
    bool any = false;
    u32 i = first;
    for (std::string_view name : names) {
      const auto zp = zero_point(op.operand(i++));
      if (!zp)
        return false;
      any |= *zp != 0;
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, *zp);
    }
    if (any)
      form.attrs.push_back(fmt::format("quantization_info = #tosa.{}<{}>", kind, text));
    return true;
  }

  static bool list(const Op &op, u32 operand, std::string_view name, Form &form) {
    const auto values = constant_ints(op.operand(operand));
    if (!values)
      return false;
    form.attrs.push_back(fmt::format("{} = {}", name, array("i64", *values)));
    return true;
  }

  static void plain_attrs(const Op &op, Form &form) {
    for (const Field &f : wire(op.opcode()).fields) {
      if (f.attr < 0 || f.name == "nan_mode" || f.name == "local_bound" || f.name == "perms" ||
          f.type == FieldType::Number)
        continue;
      const Attr a = op.attr(static_cast<u32>(f.attr));
      switch (f.type) {
      case FieldType::Int:
        form.attrs.push_back(fmt::format("{} = {} : i32", f.name, a.as_int().value()));
        break;
      case FieldType::Bool:
        form.attrs.push_back(fmt::format("{} = {}", f.name, a.as_bool()));
        break;
      case FieldType::Ints: {
        std::vector<i64> values;
        for (ir::SymInt v : a.as_ints())
          values.push_back(v.value());
        form.attrs.push_back(fmt::format("{} = {}", f.name, array("i64", values)));
        break;
      }
      case FieldType::Element:
        form.attrs.push_back(fmt::format("{} = {}", f.name, element_name(a.as_element())));
        break;
      default: {
        const bool nearest = a.as_string() == "NEAREST";
        form.attrs.push_back(
            fmt::format("{} = \"{}\"", f.name, nearest ? "NEAREST_NEIGHBOR" : a.as_string()));
        break;
      }
      }
    }
  }

  static bool clamp_attrs(const Op &op, Form &form) {
    const double low = op.attr("min_val").scalar_as_double();
    const double high = op.attr("max_val").scalar_as_double();
    // A damaged file may hold NaN, which no clamp bounds.
    const auto whole = [](double v) {
      return std::isnan(v) ? 0 : static_cast<i64>(std::clamp(v, -9.0e18, 9.0e18));
    };
    // Attributes of both kinds exist; the operand's type says which one counts.
    const ElementType e = op.operand(0)->type().element();
    const ElementType as = ir::is_float(e) ? e : ElementType::F32;
    form.attrs.push_back(
        fmt::format("min_int = {} : i64, max_int = {} : i64", whole(low), whole(high)));
    form.attrs.push_back(fmt::format("min_fp = {} : {}, max_fp = {} : {}", number(as, low),
                                     element_name(as), number(as, high), element_name(as)));
    return true;
  }

  static bool rescale_attrs(const Op &op, Form &form) {
    const auto multiplier = constant_ints(op.operand(1)), shift = constant_ints(op.operand(2));
    const auto in = zero_point(op.operand(3)), out = zero_point(op.operand(4));
    if (!multiplier || !shift || !in || !out)
      return false;
    form.attrs = {
        fmt::format("input_zp = {} : i32, output_zp = {} : i32", *in, *out),
        fmt::format("multiplier = {}", array("i32", *multiplier)),
        fmt::format("shift = {}", array("i8", *shift)),
        fmt::format("scale32 = {}", op.attr("scale32").as_bool()),
        fmt::format("double_round = {}", op.attr("rounding_mode").as_string() == "DOUBLE_ROUND"),
        fmt::format("per_channel = {}", op.attr("per_channel").as_bool())};
    return true;
  }

  /// False when something that has to be constant is not.
  static bool form_of(const Op &op, Form &form) {
    const ir::OpCode c = op.opcode();
    for (u32 i = 0; i < op.num_operands(); ++i)
      form.operands.push_back(i);
    const auto keep = [&](size_t n) { form.operands.resize(std::min(n, form.operands.size())); };
    if (c == op::RESCALE) {
      keep(1);
      return rescale_attrs(op, form);
    }
    plain_attrs(op, form);
    if (c == op::CLAMP)
      return clamp_attrs(op, form);
    if (c == op::CONV2D || c == op::CONV3D || c == op::DEPTHWISE_CONV2D ||
        c == op::TRANSPOSE_CONV2D) {
      keep(3);
      if (c == op::TRANSPOSE_CONV2D)
        form.attrs.push_back("out_shape = " + array("i64", dims_of(op.result()->type())));
      return quantization(op, 3, "conv_quant", {"input_zp", "weight_zp"}, form);
    }
    if (c == op::MATMUL) {
      keep(2);
      return quantization(op, 2, "matmul_quant", {"a_zp", "b_zp"}, form);
    }
    if (c == op::AVG_POOL2D || c == op::NEGATE) {
      keep(1);
      return quantization(op, 1, "unary_quant", {"input_zp", "output_zp"}, form);
    }
    if (c == op::MUL) {
      keep(2);
      const auto shift = constant_ints(op.operand(2));
      if (!shift || shift->size() != 1)
        return false;
      form.attrs.push_back(fmt::format("shift = {} : i8", (*shift)[0]));
      return true;
    }
    if (c == op::RESHAPE || c == op::TILE) {
      keep(1);
      return list(op, 1, c == op::RESHAPE ? "new_shape" : "multiples", form);
    }
    if (c == op::SLICE) {
      keep(1);
      return list(op, 1, "start", form) && list(op, 2, "size", form);
    }
    if (c == op::RESIZE) {
      keep(1);
      return list(op, 1, "scale", form) && list(op, 2, "offset", form) &&
             list(op, 3, "border", form);
    }
    return true;
  }

  /// The operand as this dialect wants it; its type's name goes to `type`.
  Result<std::string> operand(const Op &op, u32 i, const std::string &indent, std::string &type) {
    const Value &v = *op.operand(i);
    const Op *p = v.producer();
    const bool constant_operand = p && p->opcode() == ir::core_op::constant;
    const ir::OpCode c = op.opcode();
    std::vector<i64> dims = dims_of(v.type());
    if (c == op::PAD && i == 1) { // a list of i32
      const auto pairs = constant_ints(&v);
      if (!pairs)
        return unsupported(op, "pads by amounts known only at run time");
      type = type_name(ElementType::I32, {static_cast<i64>(pairs->size())});
      const std::string name = fmt::format("%{}", next_++);
      text_ += fmt::format("{}{} = \"tosa.const\"() {{value = dense<[{}]> : {}}} : () -> {}\n",
                           indent, name, fmt::join(*pairs, ", "), type, type);
      return name;
    }
    const bool scalar = c == op::PAD && i == 2;
    const bool wide_bias = i == 2 && constant_operand && dims == std::vector<i64>{1} &&
                           op.result()->type().rank() > 0 &&
                           (c == op::CONV2D || c == op::CONV3D || c == op::DEPTHWISE_CONV2D ||
                            c == op::TRANSPOSE_CONV2D);
    if (scalar && !constant_operand)
      return unsupported(op, "pads with a value known only at run time");
    if (scalar || wide_bias) {
      dims = scalar ? std::vector<i64>{} : std::vector<i64>{dims_of(op.result()->type()).back()};
      type = type_name(v.type().element(), dims);
      return constant(*p->attr(0u).as_constant(), dims, indent);
    }
    type = type_name(v.type());
    return value(v, indent);
  }

  Status print_op(const Op &op, int depth, const std::string &indent) {
    if (!is_tosa(op.opcode()) || wire(op.opcode()).minor > 0 || op.opcode() == op::CUSTOM)
      return unsupported(op, "is no operator of the dialect in LLVM 19");
    for (const Value &v : op.results())
      if (element_name(v.type().element()).empty())
        return unsupported(op, "gives a type that the dialect in LLVM 19 does not have");
    for (const ir::Use &u : op.operand_uses())
      if (u.value() && u.value()->type().is_tensor() &&
          element_name(u.value()->type().element()).empty())
        return unsupported(op, "takes a type that the dialect in LLVM 19 does not have");
    Form form;
    if (!form_of(op, form))
      return unsupported(op, "has an operand that the dialect in LLVM 19 wants constant");
    std::string operands, types;
    for (u32 i : form.operands) {
      std::string type;
      auto name = operand(op, i, indent, type);
      if (!name)
        return tl::unexpected(name.error());
      operands += (operands.empty() ? "" : ", ") + *name;
      types += (types.empty() ? "" : ", ") + type;
    }
    if (op.opcode() == op::TRANSPOSE) { // the permutation is an operand here
      std::vector<i64> perm;
      for (ir::SymInt d : op.attr("perms").as_ints())
        perm.push_back(d.value());
      const std::string type = type_name(ElementType::I32, {static_cast<i64>(perm.size())});
      const std::string name = fmt::format("%{}", next_++);
      text_ += fmt::format("{}{} = \"tosa.const\"() {{value = dense<[{}]> : {}}} : () -> {}\n",
                           indent, name, fmt::join(perm, ", "), type, type);
      operands += ", " + name;
      types += ", " + type;
    }
    std::string results, result_types;
    std::vector<std::string> result_names;
    const u32 first = next_++;
    for (u32 i = 0; i < op.num_results(); ++i) {
      result_names.push_back(op.num_results() == 1 ? fmt::format("%{}", first)
                                                   : fmt::format("%{}#{}", first, i));
      result_types += (i ? ", " : "") + type_name(op.result(i)->type());
    }
    if (op.num_results())
      results = op.num_results() == 1 ? fmt::format("%{} = ", first)
                                      : fmt::format("%{}:{} = ", first, op.num_results());
    text_ += fmt::format("{}{}\"{}\"({})", indent, results, mlir_name(op), operands);
    if (op.num_regions())
      if (Status s = regions(op, depth); !s)
        return s;
    if (!form.attrs.empty())
      text_ += fmt::format(" {{{}}}", fmt::join(form.attrs, ", "));
    text_ += fmt::format(" : ({}) -> ({})\n", types, result_types);
    for (u32 i = 0; i < op.num_results(); ++i)
      names_[op.result(i)] = result_names[i];
    return {};
  }

  /// Branches see the operands themselves; the regions of a loop have arguments.
  Status regions(const Op &op, int depth) {
    const std::string indent(static_cast<size_t>(depth) * 2, ' ');
    const bool loop = op.opcode() == op::WHILE_LOOP;
    text_ += " (";
    for (u32 r = 0; r < op.num_regions(); ++r) {
      const ir::Region &region_ = *op.region(r);
      text_ += r ? ", {\n" : "{\n";
      if (loop) {
        std::string args;
        for (const Value *v : region_.args()) {
          names_[v] = fmt::format("%b{}", next_++);
          args +=
              fmt::format("{}{}: {}", args.empty() ? "" : ", ", names_[v], type_name(v->type()));
        }
        text_ += fmt::format("{}^bb0({}):\n", indent, args);
      } else {
        for (u32 i = 0; i < region_.num_args() && i + 1 < op.num_operands(); ++i) {
          auto name = value(*op.operand(i + 1), indent + "  ");
          if (!name)
            return tl::unexpected(name.error());
          names_[region_.arg(i)] = *name;
        }
      }
      if (Status s = region(region_, depth + 1, "tosa.yield"); !s)
        return s;
      text_ += indent + "}";
    }
    text_ += ")";
    return {};
  }

  const ir::Graph &graph_;
  const std::function<Status(std::string_view)> &sink_;
  std::string text_;
  boost::unordered_flat_map<const Value *, std::string> names_;
  u32 next_ = 0;
};

} // namespace

Status print_mlir(const ir::Graph &graph, const std::function<Status(std::string_view)> &sink) {
  if (!graph.return_op())
    return fail(ErrorKind::Unsupported, "tosa.mlir.operator", "the graph has no end", graph.name());
  return Printer(graph, sink).print();
}

Status write_mlir(const ir::Graph &graph, const std::string &path) {
  auto file = OutputFile::create(path);
  if (!file)
    return tl::unexpected(file.error());
  const Status s = print_mlir(graph, [&](std::string_view text) { return file->write(text); });
  if (!s)
    return s;
  return file->commit();
}

} // namespace chute::tosa
