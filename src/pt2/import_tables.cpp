// The long tables of a graph object, taken from the text in one walk: nodes as instances of their
// forms, tensors with one of few descriptions.

#include "pt2/import.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace chute::pt2 {

std::optional<u64> Importer::node_table(u64 offset, NodeTable &out, ScanError &e) {
  if (offset >= doc_.text.size() || doc_.text[offset] != '[') {
    e = {offset, "an array was expected"};
    return std::nullopt;
  }
  u64 at = skip_space(doc_.text, offset + 1);
  if (at < doc_.text.size() && doc_.text[at] == ']')
    return at + 1;
  const unsigned threads =
      options_.threads ? options_.threads : std::thread::hardware_concurrency();
  if (depth_ == 0 && threads > 1)
    return node_table_ahead(at, out, e);
  NodePiece piece;
  std::vector<ir::StringId> scratch;
  for (bool done = false; !done;) {
    if (!forms_.walk(doc_.text, at, options_.piece_bytes, decoder_, piece, done, e))
      return std::nullopt;
    out.append(piece, ctx_, scratch);
  }
  return at;
}

/// One thread walks ahead, this one interns the names in order: so the result does not depend on
/// the number of threads. Walking is sequential, and no slower than interning.
std::optional<u64> Importer::node_table_ahead(u64 at, NodeTable &out, ScanError &e) {
  struct Slot {
    NodePiece piece;
    bool ready = false;
  };
  Slot ring[4];
  constexpr size_t kSlots = std::size(ring);
  std::mutex mutex;
  std::condition_variable changed;
  size_t taken = 0;              // pieces that this thread is done with
  bool ended = false, ok = true; // no piece follows those that are ready; whether all went well
  size_t made = 0;               // all four are guarded by the mutex
  std::thread worker([&] {
    Decoder decoder;
    for (bool done = false; !done;) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return made < taken + kSlots; });
      }
      Slot &slot = ring[made % kSlots];
      const bool good =
          forms_.walk(doc_.text, at, options_.piece_bytes, decoder, slot.piece, done, e);
      const std::lock_guard lock(mutex);
      done |= !good;
      ok = good;
      ended = done;
      slot.ready = good;
      made += good;
      changed.notify_all();
    }
  });
  std::vector<ir::StringId> scratch;
  for (;;) {
    Slot &slot = ring[taken % kSlots];
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return slot.ready || (ended && taken == made); });
      if (!slot.ready)
        break;
    }
    out.append(slot.piece, ctx_, scratch);
    const std::lock_guard lock(mutex);
    slot.ready = false;
    ++taken;
    changed.notify_all();
  }
  worker.join();
  return ok ? std::optional(at) : std::nullopt;
}

/// The description at `at`, which moves behind it. Tensors come in sequences that repeat, so the
/// description that came after the last one the time before is compared first.
std::optional<u32> Importer::meta_at(u64 &at, ScanError &e) {
  const std::string_view rest = doc_.text.substr(at);
  u32 *follower = metas_.empty() ? nullptr : &metas_[last_meta_].follower;
  if (follower)
    for (const u32 guess : {*follower, last_meta_}) {
      const std::string_view text = doc_.slice(metas_[guess].text);
      // Behind a whole object nothing can make it another value.
      if (text[0] == '{' && rest.starts_with(text)) {
        at += text.size();
        *follower = last_meta_ = guess;
        return guess;
      }
    }
  const std::optional<u64> end = skip_value(doc_.text, at, e);
  if (!end)
    return std::nullopt;
  const Extent extent{at, *end - at};
  const auto [it, added] =
      meta_index_.try_emplace(doc_.slice(extent), static_cast<u32>(metas_.size()));
  if (follower)
    *follower = it->second;
  if (added)
    metas_.push_back({extent, {}, it->second});
  last_meta_ = it->second;
  at = *end;
  return it->second;
}

std::optional<u64> Importer::tensor_table(u64 offset, std::vector<GraphText::TensorValue> &out,
                                          ScanError &e) {
  constexpr size_t kBatch = 256;
  std::vector<std::string_view> names;
  std::vector<ir::StringId> ids;
  const auto flush = [&] {
    ids.resize(names.size());
    ctx_.intern(names, ids);
    for (size_t i = 0; i < ids.size(); ++i)
      out[out.size() - ids.size() + i].name = ids[i];
    names.clear();
  };
  const std::optional<u64> end =
      walk_object(doc_.text, offset, e, [&](std::string_view key, u64 at) -> std::optional<u64> {
        const std::optional<u32> meta = meta_at(at, e);
        if (!meta)
          return std::nullopt;
        names.push_back(plain(key));
        out.push_back({{}, *meta});
        if (names.size() == kBatch)
          flush();
        return at;
      });
  flush();
  return end;
}

} // namespace chute::pt2
