#include "model/tokenizer.h"

#include <string.h>

#include "format/gguf_vocabulary.h"
#include "format/tokenizer_bin.h"
#include "model/tokenizer_splits.h"
#include "model/tokenizer_words.h"
#include "model/unicode.h"

namespace proofinfer {

namespace {

constexpr uint32_t kEmptyPiece = UINT32_MAX;
constexpr size_t kMaxUnitBytes = 4;
constexpr float kLowestScore = -1e10f;  // a piece of a tokenizer.bin must score higher to come from a merge

// bytes: [count], 1 to 4 of them.
uint64_t unit_key(const unsigned char *bytes, size_t count) {
  uint64_t key = static_cast<uint64_t>(count) << 32;
  for (size_t i = 0; i < count; i++) key |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return key;
}

// A number that is smaller the higher the score, equal for equal scores (the two zeros are equal), by bits alone.
uint32_t order_of(float score) {
  uint32_t bits;
  memcpy(&bits, &score, sizeof(bits));
  if (bits == 0x80000000u) bits = 0;
  return bits & 0x80000000u ? bits : ~bits & 0x7FFFFFFFu;
}

bool is_text_kind(PieceKind kind) { return kind == PieceKind::kNormal || kind == PieceKind::kUserDefined || kind == PieceKind::kUnused; }

// For how many bytes room is made when a word of `bytes` comes in a text of `all` bytes: growing by doubling costs no more than the longest.
size_t room_for(size_t bytes, size_t all) { return bytes > all / 2 ? all : 2 * bytes; }

// The piece that stands for a space.
Bytes space_of(TokenizerModel model) {
  static const unsigned char kSpace[] = {' '}, kMark[] = {0xE2, 0x96, 0x81};
  return model == TokenizerModel::kLlama ? Bytes{kMark, sizeof(kMark)} : Bytes{kSpace, sizeof(kSpace)};
}

}  // namespace

// ---- Making one ----

Status Tokenizer::create(Source *source, int32_t vocab_size, const Settings &settings, Tokenizer **tokenizer, Failure *failure) {
  Ref<Tokenizer> made(Object::make<Tokenizer>(settings.hooks, settings.memory_limit_bytes, "the tokenizer", failure));
  if (!made) return failure->status;
  if (Status status = made->read(source, static_cast<size_t>(vocab_size), failure)) return status;
  if (Status status = made->build(failure)) return status;
  *tokenizer = made.take();
  return kOk;
}

Status Tokenizer::read(Source *source, size_t vocab_size, Failure *failure) {
  bool is_gguf = false;
  if (Status status = looks_like_gguf(source, &is_gguf, failure)) return status;
  if (is_gguf) return read_gguf_vocabulary(source, vocab_size, account(), &vocabulary_, failure);
  if (vocab_size == 0)
    return fail(failure, kArgument, "vocab_size is 0; a tokenizer.bin does not say how many pieces it has: expected 1 or more");
  if (Status status = read_tokenizer_bin(source, vocab_size, account(), &vocabulary_, failure)) return status;
  if (vocab_size > kBos) vocabulary_.bos = kBos;
  if (vocab_size > kEos) vocabulary_.eos = kEos;
  return kOk;
}

Status Tokenizer::build(Failure *failure) {
  uint64_t seed = digest(vocabulary_.pieces, vocabulary_.count);
  find_stop_tokens();
  if (vocabulary_.model == TokenizerModel::kLlama2c) {
    if (Status status = build_pairs(seed, failure)) return status;
    return build_units(seed, failure);
  }
  if (Status status = specials_.create(vocabulary_, account(), seed, failure)) return status;
  if (vocabulary_.model == TokenizerModel::kGpt2) {
    if (Status status = build_rules(seed, failure)) return status;
    return vocabulary_.whole_words ? build_words(seed, failure) : kOk;
  }
  if (Status status = build_pairs(seed, failure)) return status;
  return build_units(seed, failure);
}

bool Tokenizer::is_plain(uint32_t id) const {
  if (vocabulary_.model == TokenizerModel::kLlama2c) return true;
  return is_text_kind(vocabulary_.kind(id)) && vocabulary_.length(id) > 0;
}

Status Tokenizer::build_units(uint64_t seed, Failure *failure) {
  auto is_unit = [this](uint32_t id) { return vocabulary_.length(id) - 1 < kMaxUnitBytes && is_plain(id); };  // 0 - 1 is large
  size_t unit_count = 0;
  for (uint32_t id = 0; id < vocabulary_.count; id++) unit_count += is_unit(id);
  if (Status status = units_.reserve(account(), unit_count, seed, "the tokenizer's table of units", failure)) return status;
  for (uint32_t id = 0; id < vocabulary_.count; id++)
    if (is_unit(id)) units_.insert(unit_key(vocabulary_.piece(id), vocabulary_.length(id)), static_cast<int32_t>(id), 0);
  if (vocabulary_.model == TokenizerModel::kLlama2c)
    for (int32_t b = 0; b < 256; b++) vocabulary_.byte_ids[b] = has(kFirstByte + b) ? kFirstByte + b : -1;
  for (int32_t b = 0; b < 256; b++) {
    unsigned char byte = static_cast<unsigned char>(b);
    const IdTable::Slot *slot = units_.find(unit_key(&byte, 1));
    single_[b] = slot ? slot->id : vocabulary_.byte_ids[b];
  }
  return kOk;
}

Status Tokenizer::build_pairs(uint64_t seed, Failure *failure) {
  const size_t count = vocabulary_.count;
  if (Status status = canonical_.allocate(account(), count, "the tokenizer's canonical ids", failure)) return status;
  if (Status status = ends_.allocate(account(), count, "the tokenizer's piece ends", failure)) return status;
  for (size_t i = 0; i < count; i++) {
    const unsigned char *piece = vocabulary_.piece(i);
    size_t n = vocabulary_.length(i);
    ends_[i] = n == 0 ? kEmptyPiece : piece[0] | static_cast<uint32_t>(piece[n - 1]) << 8;
  }
  Splits splits;
  if (Status status = splits.create(&vocabulary_, account(), canonical_.data(), failure)) return status;
  const bool any_score = vocabulary_.model != TokenizerModel::kLlama2c;
  auto mergeable = [&](uint32_t id) {
    return canonical_[id] == static_cast<int32_t>(id) && (any_score || vocabulary_.score(id) > kLowestScore) && is_plain(id);
  };
  // Every pair that merges: use(left, right, merged).
  auto for_each_pair = [&](auto use) {
    for (uint32_t id = 0; id < count; id++) {
      if (!mergeable(id)) continue;
      splits.for_each(id, [&](int32_t left, int32_t right) {
        if (is_plain(static_cast<uint32_t>(left)) && is_plain(static_cast<uint32_t>(right))) use(left, right, static_cast<int32_t>(id));
      });
    }
  };
  size_t pair_count = 0;
  for_each_pair([&pair_count](int32_t, int32_t, int32_t) { pair_count++; });
  if (Status status = pairs_.reserve(account(), pair_count, seed, "the tokenizer's table of pairs", failure)) return status;
  memset(joins_, 0, sizeof(joins_));
  for_each_pair([this](int32_t left, int32_t right, int32_t merged) {
    pairs_.insert(pair_key(left, right), merged, order_of(score(merged)));
    uint32_t l = ends_[static_cast<size_t>(left)], r = ends_[static_cast<size_t>(right)];
    if (l != kEmptyPiece && r != kEmptyPiece) joins_[l >> 8][(r & 255) / 64] |= uint64_t(1) << (r % 64);
  });
  return kOk;
}

// Text never becomes a control piece by merging.
Status Tokenizer::build_rules(uint64_t seed, Failure *failure) {
  const Buffer<Merge> &merges = vocabulary_.merges;
  if (Status status = pairs_.reserve(account(), merges.count(), seed, "the tokenizer's table of pairs", failure)) return status;
  for (size_t i = 0; i < merges.count(); i++)
    if (is_plain(static_cast<uint32_t>(merges[i].merged)))
      pairs_.insert(pair_key(merges[i].left, merges[i].right), merges[i].merged, static_cast<uint32_t>(i));
  vocabulary_.merges.reset();
  return kOk;
}

Status Tokenizer::build_words(uint64_t seed, Failure *failure) {
  if (Status status = words_.reserve(account(), &vocabulary_.pieces, vocabulary_.count, seed, failure)) return status;
  for (uint32_t id = 0; id < vocabulary_.count; id++)
    if (is_plain(id)) words_.insert(static_cast<int32_t>(id));
  return kOk;
}

int32_t Tokenizer::find_piece(Bytes bytes) const {
  for (uint32_t id = 0; id < vocabulary_.count && bytes.count > 0; id++) {
    Bytes candidate = piece(static_cast<int32_t>(id));
    if (candidate.count == bytes.count && memcmp(candidate.data, bytes.data, bytes.count) == 0) return static_cast<int32_t>(id);
  }
  return -1;
}

void Tokenizer::add_stop_token(int32_t id) {
  if (id < 0) return;
  for (size_t i = 0; i < stop_token_count_; i++)
    if (stop_tokens_[i] == id) return;
  stop_tokens_[stop_token_count_++] = id;
}

// What the format says: BOS for a tokenizer.bin, as the reference does; for GGUF what the file names and control pieces that are known ends.
void Tokenizer::find_stop_tokens() {
  if (vocabulary_.model == TokenizerModel::kLlama2c) return add_stop_token(vocabulary_.bos);
  static const char *const kEnds[] = {"<|eot_id|>", "<|im_end|>", "<|end_of_text|>", "<|endoftext|>", "<|eom_id|>", "</s>"};
  static_assert(3 + sizeof(kEnds) / sizeof(*kEnds) <= kMaxStopTokens, "each may be another id");
  add_stop_token(vocabulary_.eos);
  add_stop_token(vocabulary_.eot);
  add_stop_token(vocabulary_.eom);
  for (const char *end : kEnds) {
    int32_t id = find_piece({reinterpret_cast<const unsigned char *>(end), strlen(end)});
    if (id >= 0 && kind(id) == PieceKind::kControl) add_stop_token(id);
  }
}

// ---- Text to ids ----

Status Tokenizer::fail_byte(const unsigned char *byte, const Ids &ids, Failure *failure) const {
  size_t offset = static_cast<size_t>(byte - ids.text);
  if (vocabulary_.model == TokenizerModel::kLlama2c)
    return fail(failure, kFormat, "the byte 0x%02X at offset %zu of the text needs the byte piece %d; the vocabulary has %d pieces", *byte,
                offset, kFirstByte + *byte, vocab_size());
  return fail(failure, kFormat, "the byte 0x%02X at offset %zu of the text needs a piece for it; none of the vocabulary's %d is it", *byte,
              offset, vocab_size());
}

Status Tokenizer::add_space(Ids *ids, Failure *failure) const {
  Bytes space = space_of(vocabulary_.model);
  const IdTable::Slot *slot = units_.find(unit_key(space.data, space.count));
  if (!slot)
    return fail(failure, kFormat, "the vocabulary of %d pieces has no piece \"%s\" (one space), with which every text begins", vocab_size(),
                vocabulary_.model == TokenizerModel::kLlama ? "\xE2\x96\x81" : " ");
  ids->data[ids->count++] = slot->id;
  return kOk;
}

Status Tokenizer::add_bytes(Bytes bytes, Ids *ids, Failure *failure) const {
  for (size_t i = 0; i < bytes.count; i++) {
    int32_t id = vocabulary_.byte_ids[bytes.data[i]];
    if (id < 0) return fail_byte(bytes.data + i, *ids, failure);
    ids->data[ids->count++] = id;
  }
  return kOk;
}

// As the reference does it: one unit is a byte and the continuation bytes after it, four at most together, valid UTF-8 or not.
Status Tokenizer::add_units(Bytes text, Ids *ids, Failure *failure) const {
  for (size_t at = 0, length; at < text.count; at += length) {
    length = 1;
    while (length < kMaxUnitBytes && at + length < text.count && (text.data[at + length] & 0xC0) == 0x80) length++;
    const IdTable::Slot *slot = nullptr;
    if (length == 1) {
      if (single_[text.data[at]] < 0) return fail_byte(text.data + at, *ids, failure);
      ids->data[ids->count++] = single_[text.data[at]];
    } else if ((slot = units_.find(unit_key(text.data + at, length))) != nullptr) {
      ids->data[ids->count++] = slot->id;
    } else if (Status status = add_bytes({text.data + at, length}, ids, failure)) {
      return status;
    }
  }
  return kOk;
}

// As llama.cpp does it for valid UTF-8: one unit is a character, and a space is U+2581. A byte that begins no character is a unit by itself. These
// vocabularies always have an unknown piece: the first, unless the file names another.
Status Tokenizer::add_characters(Bytes text, Ids *ids, Failure *failure) const {
  for (size_t at = 0, length; at < text.count; at += length) {
    length = first_char(text.data + at, text.count - at).bytes;
    if (text.data[at] == ' ') {
      if (Status status = add_space(ids, failure)) return status;
    } else if (const IdTable::Slot *slot = units_.find(unit_key(text.data + at, length))) {
      ids->data[ids->count++] = slot->id;
    } else if (vocabulary_.byte_ids[text.data[at]] < 0) {
      ids->data[ids->count++] = vocabulary_.unknown;
    } else if (Status status = add_bytes({text.data + at, length}, ids, failure)) {
      return status;
    }
  }
  return kOk;
}

Status Tokenizer::add_word(Bytes word, Ids *ids, Failure *failure) const {
  int32_t whole = words_.find(word);
  if (whole >= 0) {
    ids->data[ids->count++] = whole;
    return kOk;
  }
  const size_t from = ids->count;
  if (Status status = add_bytes(word, ids, failure)) return status;
  ids->count = from + ids->merger->run(ids->data + from, word.count, ids->data + from);
  return kOk;
}

Status Tokenizer::add_words(Bytes text, Ids *ids, Failure *failure) const {
  Words words(vocabulary_.pre, text.data, text.count);
  for (size_t begin = 0, end; words.next(&end); begin = end) {
    if (ids->merger->room() < end - begin)
      if (Status status = ids->merger->reserve(account(), room_for(end - begin, text.count), failure)) return status;
    if (Status status = add_word({text.data + begin, end - begin}, ids, failure)) return status;
  }
  return kOk;
}

bool Tokenizer::may_join(int32_t left, int32_t right) const {
  uint32_t l = ends_[static_cast<size_t>(left)], r = ends_[static_cast<size_t>(right)];
  if (l == kEmptyPiece || r == kEmptyPiece) return true;
  return joins_[l >> 8][(r & 255) / 64] >> (r % 64) & 1;
}

// Tokens that no merge can ever join across are independent of each other: a merge keeps the outer bytes of what it merges, so the bytes on
// both sides of a border stay as they are until the border goes. Prose falls into its words.
size_t Tokenizer::segment_end(const int32_t *ids, size_t begin, size_t count) const {
  size_t end = begin + 1;
  while (end < count && may_join(ids[end - 1], ids[end])) end++;
  return end;
}

Status Tokenizer::merge(size_t from, Ids *ids, Failure *failure) const {
  size_t longest = 0;
  for (size_t begin = from, end; begin < ids->count; begin = end) {
    end = segment_end(ids->data, begin, ids->count);
    if (end - begin > longest) longest = end - begin;
  }
  if (longest < 2) return kOk;
  if (ids->merger->room() < longest)
    if (Status status = ids->merger->reserve(account(), longest, failure)) return status;
  size_t out = from;
  for (size_t begin = from, end; begin < ids->count; begin = end) {
    end = segment_end(ids->data, begin, ids->count);
    out += ids->merger->run(ids->data + begin, end - begin, ids->data + out);
  }
  ids->count = out;
  return kOk;
}

// Text between special pieces. A BOS of a tokenizer.bin is part of what is merged, as in the reference.
Status Tokenizer::add_text(Bytes text, bool space_prefix, Ids *ids, Failure *failure) const {
  if (text.count == 0) return kOk;
  if (vocabulary_.model == TokenizerModel::kGpt2) return add_words(text, ids, failure);
  const bool reference = vocabulary_.model == TokenizerModel::kLlama2c;
  const size_t from = reference ? 0 : ids->count;
  if (space_prefix && vocabulary_.add_space_prefix)
    if (Status status = add_space(ids, failure)) return status;
  if (Status status = reference ? add_units(text, ids, failure) : add_characters(text, ids, failure)) return status;
  return merge(from, ids, failure);
}

Status Tokenizer::encode(const char *text, size_t text_bytes, const EncodeOptions &options, Buffer<int32_t> *ids, size_t *count,
                         Failure *failure) const {
  if (text_bytes > kMaxTextBytes)
    return fail(failure, kArgument, "the text has %zu bytes; at most %zu are possible", text_bytes, kMaxTextBytes);
  if ((options.bos && bos() < 0) || (options.eos && eos() < 0))
    return fail(failure, kFormat, "the id of %s is asked for and the vocabulary of %d pieces has none",
                options.bos && bos() < 0 ? "BOS" : "EOS", vocab_size());
  const Bytes all = {reinterpret_cast<const unsigned char *>(text), text_bytes};
  Buffer<Specials::Hit> hits;
  size_t hit_count = 0;
  if (specials_.any(options.special))
    if (Status status = specials_.find(vocabulary_, all, options.special, account(), &hits, &hit_count, failure)) return status;
  if (Status status = ids->allocate(account(), text_bytes + hit_count + 3, "the text's tokens", failure)) return status;
  Merger merger(&pairs_, canonical_.data());
  Ids made = {all.data, ids->data(), 0, &merger};
  if (options.bos) made.data[made.count++] = bos();
  size_t at = 0;
  for (size_t i = 0; i < hit_count; i++) {
    if (Status status = add_text({all.data + at, hits[i].at - at}, i > 0 || options.space_prefix, &made, failure)) return status;
    made.data[made.count++] = hits[i].id;
    at = hits[i].at + vocabulary_.length(static_cast<size_t>(hits[i].id));
  }
  if (Status status = add_text({all.data + at, text_bytes - at}, hit_count > 0 || options.space_prefix, &made, failure)) return status;
  if (options.eos) made.data[made.count++] = eos();
  *count = made.count;
  return kOk;
}

// ---- Ids to text ----

namespace {

struct AllBytes {
  unsigned char byte[256];
  constexpr AllBytes() : byte() {
    for (int i = 0; i < 256; i++) byte[i] = static_cast<unsigned char>(i);
  }
};
constexpr AllBytes kAllBytes;

int hex_digit(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

// The byte that a byte piece names, "<0x" two hexadecimal digits ">"; nullptr: it names none.
static const unsigned char *named_byte(Bytes piece) {
  if (piece.count != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>') return nullptr;
  int high = hex_digit(piece.data[3]), low = hex_digit(piece.data[4]);
  return high < 0 || low < 0 ? nullptr : &kAllBytes.byte[16 * high + low];
}

Bytes Tokenizer::decode(int32_t previous, int32_t token, bool spelled) const {
  const bool reference = vocabulary_.model == TokenizerModel::kLlama2c;
  const PieceKind kind = this->kind(token);
  Bytes bytes = piece(token);
  if (!spelled && (kind == PieceKind::kControl || kind == PieceKind::kUnknown || kind == PieceKind::kUnused)) return {nullptr, 0};
  const bool follows_bos = previous >= 0 && previous == bos() && vocabulary_.add_space_prefix;
  if (follows_bos && bytes.count > 0 && bytes.data[0] == ' ') bytes = {bytes.data + 1, bytes.count - 1};
  if (spelled || !(reference || kind == PieceKind::kByte)) return bytes;
  const unsigned char *byte = named_byte(bytes);
  return byte ? Bytes{byte, 1} : bytes;
}

}  // namespace proofinfer
