#pragma once

#include "circle/element.h"
#include "circle/file_view.h"
#include "circle/write_plan.h"
#include "ir/context.h"

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <string>
#include <utility>
#include <vector>

/// Which constants share a tensor or a buffer. Internal to the writer.
namespace chute::circle {

using ir::Constant;
using ir::Type;
using ir::Value;

/// "%name circle.conv_2d"
std::string describe(const ir::Graph &graph, const Value *v);
/// A failure at an operator, with where it came from.
tl::unexpected<Diagnostic> fail_at(const ir::Graph &graph, ir::LocId loc, std::string code,
                                   std::string message, std::string object, std::string hint = {});

/// Decides which constants share a tensor or a buffer.
class ConstantPool {
public:
  ConstantPool(const WriteRequest &request, const FileView *source, Plan &plan, WriteStats &stats)
      : request_(request), source_(source), plan_(plan), stats_(stats) {
    if (source_ && source_->model->buffers())
      source_buffer_.assign(source_->model->buffers()->size(), 0);
  }

  void begin(const ir::Graph &graph, const GraphOrigin *origin) {
    graph_ = &graph;
    origin_ = origin;
    const size_t n = graph.constants().size();
    tensor_class_.assign(n, -1);
    buffer_.assign(n, 0);
    class_buffer_.reserve(class_buffer_.size() + n);
  }

  /// First pass: how many constants have a type. Only those that are not alone need a hash.
  void count(const Constant &c) {
    const u32 id = base_type(c).id();
    if (id >= type_count_.size())
      type_count_.resize(id + 1, 0);
    if (counted_.insert(&c).second)
      ++type_count_[id];
  }

  /// The class of a constant: equal ones have the same, of equal type and content. The type is that
  /// of the value, which may carry quantization that the stored bytes do not name.
  Result<i32> classify(const Constant &c, const Value *at) {
    i32 &known = tensor_class_[c.id];
    const bool plain = at->type() == c.type;
    if (plain && known >= 0)
      return known;
    if (!c.has_data && c.num_elements() > 0)
      return fail_at(*graph_, at->producer()->loc(), "circle.write.no_data",
                     "the constant has a shape but no bytes (saved with fake or meta weights)",
                     describe(*graph_, at), "export the program with its real weights");
    auto buffer = stored(c, at);
    if (!buffer)
      return tl::unexpected(buffer.error());
    const auto [it, fresh] = classes_.try_emplace(std::pair(at->type().id(), *buffer),
                                                  static_cast<i32>(class_buffer_.size()));
    if (fresh)
      class_buffer_.push_back(*buffer);
    else if (plain)
      ++stats_.constants_shared;
    if (plain)
      known = it->second;
    return it->second;
  }
  u32 buffer_of_class(i32 c) const { return class_buffer_[static_cast<size_t>(c)]; }

  /// The buffer of a constant: the one that it came from, or one with equal bytes.
  Result<u32> stored(const Constant &c, const Value *at) {
    u32 &known = buffer_[c.id];
    if (known != 0)
      return known;
    const u32 origin = origin_ ? origin_->buffer_of(c) : kNoOrigin;
    if (origin != kNoOrigin && (!request_.compact || !c.has_data))
      return known = source_buffer(origin);
    auto buffer = buffer_of(c, at);
    if (buffer)
      known = *buffer;
    return buffer;
  }

  /// A buffer of the source file, as it is.
  u32 source_buffer(u32 index) {
    if (index == 0 || index >= source_buffer_.size())
      return 0; // a damaged file's metadata may lie nowhere
    u32 &known = source_buffer_[index];
    if (known == 0) {
      const auto raw = payload(*source_, index);
      plan_.buffers.push_back({nullptr, raw.size(), raw, index, false});
      plan_.payload_bytes += raw.size();
      known = static_cast<u32>(plan_.buffers.size());
    }
    return known;
  }

  /// A buffer that nothing shares: the initial content of a variable.
  Result<u32> own_buffer(const Constant &c, const Value *at) {
    const auto bytes = wire_bytes(c.type.element(), c.num_elements());
    if (!bytes || !c.has_data)
      return fail_at(*graph_, at->producer()->loc(), "circle.write.type",
                     "a constant of type " + std::string(ir::element_type_name(c.type.element())) +
                         " has no bytes that Circle can store",
                     describe(*graph_, at));
    plan_.buffers.push_back({&c, *bytes, {}, kNoOrigin, false});
    plan_.payload_bytes += *bytes;
    return static_cast<u32>(plan_.buffers.size());
  }

private:
  Type base_type(const Constant &c) const {
    return c.type.quant() ? request_.graphs[0]->context().with_quant(c.type, nullptr) : c.type;
  }

  Result<u32> buffer_of(const Constant &c, const Value *at) {
    if (type_count_[base_type(c).id()] == 1)
      return own_buffer(c, at);
    const ir::ContentHash &hash = c.hash(&stats_.work.bytes_hashed);
    const auto [it, fresh] = by_hash_.try_emplace({hash.low, hash.high}, 0u);
    if (fresh) {
      auto buffer = own_buffer(c, at);
      if (!buffer)
        return buffer;
      it->second = *buffer;
    }
    return it->second;
  }

  struct PairHash {
    using is_avalanching = void;
    size_t operator()(const std::pair<u64, u64> &p) const { return p.first ^ p.second; }
    size_t operator()(const std::pair<u32, u32> &p) const {
      return (static_cast<u64>(p.first) << 32 | p.second) * 0x9E3779B97F4A7C15ull;
    }
  };

  const WriteRequest &request_;
  const FileView *source_;
  Plan &plan_;
  WriteStats &stats_;
  const ir::Graph *graph_ = nullptr;
  const GraphOrigin *origin_ = nullptr;
  std::vector<u32> source_buffer_; // by the source's index
  std::vector<u32> type_count_;    // by Type::id
  boost::unordered_flat_set<const Constant *> counted_;
  std::vector<i32> tensor_class_; // by Constant::id
  std::vector<u32> buffer_;       // by Constant::id; 0 is not decided
  std::vector<u32> class_buffer_; // by class
  boost::unordered_flat_map<std::pair<u64, u64>, u32, PairHash> by_hash_;
  boost::unordered_flat_map<std::pair<u32, u32>, i32, PairHash> classes_;
};

} // namespace chute::circle
