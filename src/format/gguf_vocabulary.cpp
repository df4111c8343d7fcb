#include "format/gguf_vocabulary.h"

#include <math.h>
#include <string.h>

#include "format/gguf.h"
#include "format/piece_table.h"

namespace proofinfer {

namespace {

constexpr char kModelKey[] = "tokenizer.ggml.model", kPreKey[] = "tokenizer.ggml.pre", kTokensKey[] = "tokenizer.ggml.tokens";
constexpr char kScoresKey[] = "tokenizer.ggml.scores", kKindsKey[] = "tokenizer.ggml.token_type", kMergesKey[] = "tokenizer.ggml.merges";
constexpr char kTemplateKey[] = "tokenizer.chat_template";

// What llama.cpp takes for the same splitting. Spelled as files do.
struct PreTokenizerName {
  const char *name;
  PreTokenizer pre;
  bool whole_words, add_bos;
};
constexpr PreTokenizerName kPreTokenizers[] = {
    {"default", PreTokenizer::kDefault, false, false},
    {"llama-bpe", PreTokenizer::kLlama3, true, true},
    {"llama3", PreTokenizer::kLlama3, true, true},
    {"llama-v3", PreTokenizer::kLlama3, true, true},
    {"falcon3", PreTokenizer::kLlama3, true, true},
    {"falcon-h1", PreTokenizer::kLlama3, true, true},
    {"pixtral", PreTokenizer::kLlama3, true, true},
    {"midm-2.0", PreTokenizer::kLlama3, true, true},
    {"lfm2", PreTokenizer::kLlama3, true, true},
    {"dbrx", PreTokenizer::kLlama3, false, false},
    {"smaug-bpe", PreTokenizer::kLlama3, false, false},
    {"smollm", PreTokenizer::kSmollm, false, false},
    {"starcoder", PreTokenizer::kSmollm, false, false},
    {"refact", PreTokenizer::kSmollm, false, false},
    {"command-r", PreTokenizer::kSmollm, false, false},
    {"codeshell", PreTokenizer::kSmollm, false, false},
    {"exaone", PreTokenizer::kSmollm, false, false},
    {"minerva-7b", PreTokenizer::kSmollm, false, false},
    {"gpt-2", PreTokenizer::kGpt2, false, false},
    {"phi-2", PreTokenizer::kGpt2, false, false},
    {"mpt", PreTokenizer::kGpt2, false, false},
    {"olmo", PreTokenizer::kGpt2, false, false},
    {"jais", PreTokenizer::kGpt2, false, false},
    {"gigachat", PreTokenizer::kGpt2, false, false},
    {"a.x-4.0", PreTokenizer::kGpt2, false, false},
    {"mellum", PreTokenizer::kGpt2, false, false},
    {"trillion", PreTokenizer::kGpt2, false, false},
    {"exaone4", PreTokenizer::kGpt2, false, false},
    {"granite-docling", PreTokenizer::kGpt2, false, false},
};

// U+2581, which `llama` vocabularies have for a space.
constexpr unsigned char kSpaceMark[] = {0xE2, 0x96, 0x81};

bool is_special(PieceKind kind) { return kind == PieceKind::kControl || kind == PieceKind::kUnknown; }

// ---- The letters that byte-level vocabularies spell bytes with ----

// Printable bytes of Latin-1 are their own letters; the others, in order, are U+0100 and on. -1: the code is no letter.
int byte_of_letter(uint32_t code) {
  if ((code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code <= 0xAC) || (code >= 0xAE && code <= 0xFF)) return static_cast<int>(code);
  if (code < 0x100) return -1;
  if (code <= 0x120) return static_cast<int>(code - 0x100);
  if (code <= 0x142) return static_cast<int>(code - 0x121 + 0x7F);
  return code == 0x143 ? 0xAD : -1;
}

// letter: [2]. Its length.
size_t letter_of_byte(unsigned char byte, unsigned char *letter) {
  uint32_t code = byte;
  if (byte <= 0x20) code = 0x100u + byte;
  if (byte >= 0x7F && byte <= 0xA0) code = 0x121u + byte - 0x7F;
  if (byte == 0xAD) code = 0x143;
  if (code < 0x80) {
    letter[0] = static_cast<unsigned char>(code);
    return 1;
  }
  letter[0] = static_cast<unsigned char>(0xC0 | code >> 6);
  letter[1] = static_cast<unsigned char>(0x80 | (code & 0x3F));
  return 2;
}

// The byte that the letter at *at stands for, and *at behind it; -1: that is no letter.
int next_byte(Bytes piece, size_t *at) {
  uint32_t code = piece.data[(*at)++];
  if (code < 0x80) return byte_of_letter(code);
  if (code < 0xC2 || code > 0xC5 || *at == piece.count || (piece.data[*at] & 0xC0) != 0x80) return -1;
  return byte_of_letter((code & 0x1F) << 6 | (piece.data[(*at)++] & 0x3Fu));
}

// The bytes that a piece's letters stand for, to out: [piece.count], which may be the piece itself or before it. Their number; SIZE_MAX: not all
// are letters, and nothing is written.
size_t spelled_bytes(Bytes piece, unsigned char *out) {
  for (size_t at = 0; at < piece.count;)
    if (next_byte(piece, &at) < 0) return SIZE_MAX;
  size_t count = 0;
  for (size_t at = 0; at < piece.count;) out[count++] = static_cast<unsigned char>(next_byte(piece, &at));
  return count;
}

// ---- Reading ----

class VocabularyReader {
 public:
  VocabularyReader(Source *source, const Gguf &gguf, Account *account, Vocabulary *vocabulary)
      : source_(source), gguf_(gguf), account_(account), v_(vocabulary) {}

  Status read(size_t wanted, Failure *failure);

 private:
  Status read_model(Failure *failure);
  Status read_pre_tokenizer(Failure *failure);
  Status read_pieces(size_t wanted, Failure *failure);
  Status read_scores(Failure *failure);
  Status read_kinds(Failure *failure);
  Status read_merges(Failure *failure);
  Status read_merge(size_t index, GgufCursor *cursor, Buffer<unsigned char> *text, Failure *failure);
  Status read_ids(Failure *failure);
  Status read_id(const char *key, int32_t *id, Failure *failure);
  Status read_flags(Failure *failure);
  Status read_template(Failure *failure);
  Status index_pieces(Failure *failure);
  void find_bytes();
  Status make_texts(Failure *failure);
  void decode_pieces();
  // kFormat unless an array has an element a piece.
  Status check_count(const char *key, uint64_t count, Failure *failure) const;

  Source *source_;
  const Gguf &gguf_;
  Account *account_;
  Vocabulary *v_;
  size_t file_count_ = 0;  // pieces that the file has
  bool default_add_bos_ = true;
  PieceTable table_;  // as the file spells them
};

Status VocabularyReader::read_model(Failure *failure) {
  char name[48];
  if (Status status = gguf_.get_name(kModelKey, Need::kRequired, source_, name, sizeof(name), failure)) return status;
  if (strcmp(name, "llama") == 0) {
    v_->model = TokenizerModel::kLlama;
    return kOk;
  }
  v_->model = TokenizerModel::kGpt2;
  if (strcmp(name, "gpt2") == 0) return read_pre_tokenizer(failure);
  return fail(failure, kUnsupported, "key '%s': found \"%s\"; supported are \"llama\" and \"gpt2\"", kModelKey, name);
}

Status VocabularyReader::read_pre_tokenizer(Failure *failure) {
  char name[48] = "default";
  if (gguf_.find(kPreKey))
    if (Status status = gguf_.get_name(kPreKey, Need::kRequired, source_, name, sizeof(name), failure)) return status;
  for (const PreTokenizerName &known : kPreTokenizers) {
    if (strcmp(name, known.name) != 0) continue;
    v_->pre = known.pre;
    v_->pre_name = known.name;
    v_->whole_words = known.whole_words;
    default_add_bos_ = known.add_bos;
    return kOk;
  }
  char list[512];
  size_t used = 0;
  for (const PreTokenizerName &known : kPreTokenizers) {
    size_t length = strlen(known.name);
    memcpy(list + used, known.name, length);
    used += length;
    memcpy(list + used, ", ", 2);
    used += 2;
  }
  list[used - 2] = '\0';
  return fail(failure, kUnsupported, "key '%s': found \"%s\"; supported are %s", kPreKey, name, list);
}

Status VocabularyReader::read_pieces(size_t wanted, Failure *failure) {
  GgufArray array;
  if (Status status = gguf_.get_array(kTokensKey, Need::kRequired, GgufType::kText, &array, failure)) return status;
  if (array.count == 0 || array.count > INT32_MAX)
    return fail(failure, kFormat, "key '%s': found %llu pieces; expected 1 to %ld", kTokensKey,
                static_cast<unsigned long long>(array.count), long{INT32_MAX});
  file_count_ = static_cast<size_t>(array.count);
  if (wanted != 0 && wanted < file_count_)
    return fail(failure, kArgument, "vocab_size is %zu and the file has %zu pieces; expected 0 or at least as many", wanted, file_count_);
  v_->count = wanted ? wanted : file_count_;
  size_t total = 0;
  GgufCursor lengths(source_, array.offset);
  for (size_t i = 0; i < file_count_; i++) {
    uint64_t bytes;
    if (Status status = lengths.read_text_bytes(&bytes, kTokensKey, failure)) return status;
    if (Status status = lengths.skip(bytes, kTokensKey, failure)) return status;
    total += static_cast<size_t>(bytes);  // no more than the file has
  }
  if (Status status = v_->pieces.offsets.allocate(account_, v_->count + 1, "the tokenizer's piece offsets", failure)) return status;
  if (Status status = v_->pieces.bytes.allocate(account_, total, "the tokenizer's pieces", failure)) return status;
  GgufCursor cursor(source_, array.offset);
  size_t used = 0;
  for (size_t i = 0; i < file_count_; i++) {
    uint64_t bytes;
    if (Status status = cursor.read_text_bytes(&bytes, kTokensKey, failure)) return status;
    if (bytes > total - used) return fail(failure, kIo, "key '%s': piece %zu: the file changed while it was read", kTokensKey, i);
    v_->pieces.offsets[i] = used;
    if (Status status = cursor.read(v_->pieces.bytes.data() + used, bytes, kTokensKey, failure)) return status;
    used += static_cast<size_t>(bytes);
    if (bytes > v_->longest_bytes) v_->longest_bytes = static_cast<size_t>(bytes);
  }
  for (size_t i = file_count_; i <= v_->count; i++) v_->pieces.offsets[i] = used;
  return kOk;
}

Status VocabularyReader::check_count(const char *key, uint64_t count, Failure *failure) const {
  if (count == file_count_) return kOk;
  return fail(failure, kFormat, "key '%s': found %llu elements; expected %zu, one for each of '%s'", key,
              static_cast<unsigned long long>(count), file_count_, kTokensKey);
}

Status VocabularyReader::read_scores(Failure *failure) {
  if (!gguf_.find(kScoresKey)) return kOk;
  GgufArray array;
  if (Status status = gguf_.get_array(kScoresKey, Need::kRequired, GgufType::kF32, &array, failure)) return status;
  if (Status status = check_count(kScoresKey, array.count, failure)) return status;
  if (Status status = v_->scores.allocate(account_, v_->count, "the tokenizer's scores", failure)) return status;
  if (Status status = source_->read(array.offset, v_->scores.data(), file_count_ * sizeof(float), kScoresKey, failure)) return status;
  to_host_f32(v_->scores.data(), file_count_);
  for (size_t i = 0; i < file_count_; i++)
    if (!isfinite(v_->scores[i]))
      return fail(failure, kFormat, "key '%s': piece %zu: expected a finite score, found %s", kScoresKey, i,
                  isnan(v_->scores[i]) ? "NaN" : "infinity");
  for (size_t i = file_count_; i < v_->count; i++) v_->scores[i] = 0.0f;
  return kOk;
}

Status VocabularyReader::read_kinds(Failure *failure) {
  const bool there = gguf_.find(kKindsKey) != nullptr;
  if (!there && v_->count == file_count_) return kOk;
  if (Status status = v_->kinds.allocate(account_, v_->count, "the kinds of the tokenizer's pieces", failure)) return status;
  for (size_t i = 0; i < v_->count; i++) v_->kinds[i] = i < file_count_ ? PieceKind::kNormal : PieceKind::kControl;
  if (!there) return kOk;
  GgufArray array;
  if (Status status = gguf_.get_array(kKindsKey, Need::kRequired, GgufType::kI32, &array, failure)) return status;
  if (Status status = check_count(kKindsKey, array.count, failure)) return status;
  GgufCursor cursor(source_, array.offset);
  for (size_t i = 0; i < file_count_; i++) {
    uint32_t kind;
    if (Status status = cursor.read_u32(&kind, kKindsKey, failure)) return status;
    if (kind < 1 || kind > 6)
      return fail(failure, kFormat, "key '%s': piece %zu: expected a type of 1 to 6, found %ld", kKindsKey, i,
                  static_cast<long>(static_cast<int32_t>(kind)));
    v_->kinds[i] = static_cast<PieceKind>(kind);
  }
  return kOk;
}

Status VocabularyReader::index_pieces(Failure *failure) {
  if (Status status = table_.reserve(account_, &v_->pieces, v_->count, digest(v_->pieces, v_->count), failure)) return status;
  for (size_t i = 0; i < file_count_; i++) table_.insert(static_cast<int32_t>(i));
  return kOk;
}

// A byte without a letter (`gpt2`), or without a piece "<0x0A>" or one that is that byte (`llama`), has none.
void VocabularyReader::find_bytes() {
  static const char kHex[] = "0123456789ABCDEF";
  for (unsigned b = 0; b < 256; b++) {
    unsigned char spelled[6] = {'<', '0', 'x', static_cast<unsigned char>(kHex[b >> 4]), static_cast<unsigned char>(kHex[b & 15]), '>'};
    unsigned char byte = static_cast<unsigned char>(b);
    size_t count = v_->model == TokenizerModel::kGpt2 ? letter_of_byte(byte, spelled) : sizeof(spelled);
    int32_t id = table_.find({spelled, count});
    if (id < 0 && v_->model == TokenizerModel::kLlama) id = table_.find({&byte, 1});
    v_->byte_ids[b] = id >= 0 && !is_special(v_->kind(static_cast<size_t>(id))) ? id : -1;
  }
}

// "left right": the first space that is not the first byte parts them.
Status VocabularyReader::read_merge(size_t index, GgufCursor *cursor, Buffer<unsigned char> *text, Failure *failure) {
  uint64_t bytes;
  if (Status status = cursor->read_text_bytes(&bytes, kMergesKey, failure)) return status;
  if (bytes > text->count())
    return fail(failure, kFormat, "key '%s': merge %zu has %llu bytes; expected two pieces, which have %zu at most", kMergesKey, index,
                static_cast<unsigned long long>(bytes), text->count());
  size_t count = static_cast<size_t>(bytes);
  unsigned char *data = text->data();
  if (Status status = cursor->read(data, bytes, kMergesKey, failure)) return status;
  const void *space = count > 2 ? memchr(data + 1, ' ', count - 2) : nullptr;
  if (!space)
    return fail(failure, kFormat, "key '%s': merge %zu is \"%.*s\"; expected two pieces with a space between them", kMergesKey, index,
                static_cast<int>(count < 40 ? count : 40), reinterpret_cast<const char *>(data));
  size_t left = static_cast<size_t>(static_cast<const unsigned char *>(space) - data), right = count - left - 1;
  Merge merge;
  merge.left = table_.find({data, left});
  merge.right = table_.find({data + left + 1, right});
  memmove(data + left, data + left + 1, right);
  merge.merged = table_.find({data, left + right});
  if (merge.left < 0 || merge.right < 0 || merge.merged < 0)
    return fail(failure, kFormat, "key '%s': merge %zu makes \"%.*s\" of %zu and %zu bytes; expected all three to be pieces, %s is none",
                kMergesKey, index, static_cast<int>(left + right < 40 ? left + right : 40), reinterpret_cast<const char *>(data), left,
                right,
                merge.left < 0    ? "the first"
                : merge.right < 0 ? "the second"
                                  : "the whole");
  v_->merges[index] = merge;
  return kOk;
}

Status VocabularyReader::read_merges(Failure *failure) {
  GgufArray array;
  if (Status status = gguf_.get_array(kMergesKey, Need::kRequired, GgufType::kText, &array, failure)) return status;
  if (array.count > INT32_MAX)
    return fail(failure, kFormat, "key '%s': found %llu merges; expected %ld at most", kMergesKey,
                static_cast<unsigned long long>(array.count), long{INT32_MAX});
  Buffer<unsigned char> text;
  size_t count = static_cast<size_t>(array.count);
  if (Status status = v_->merges.allocate(account_, count, "the tokenizer's merges", failure)) return status;
  if (Status status = text.allocate(account_, 2 * v_->longest_bytes + 1, "reading the tokenizer's merges", failure)) return status;
  GgufCursor cursor(source_, array.offset);
  for (size_t i = 0; i < count; i++)
    if (Status status = read_merge(i, &cursor, &text, failure)) return status;
  return kOk;
}

Status VocabularyReader::read_id(const char *key, int32_t *id, Failure *failure) {
  if (!gguf_.find(key)) return kOk;
  uint64_t value = 0;
  if (Status status = gguf_.get_u64(key, Need::kRequired, &value, failure)) return status;
  if (value >= file_count_)
    return fail(failure, kFormat, "key '%s': found id %llu; expected one of the %zu pieces", key, static_cast<unsigned long long>(value),
                file_count_);
  *id = static_cast<int32_t>(value);
  return kOk;
}

Status VocabularyReader::read_ids(Failure *failure) {
  if (v_->model == TokenizerModel::kLlama) {  // what SentencePiece's trainer gives unless told otherwise
    v_->unknown = 0;
    if (file_count_ > 1) v_->bos = 1;
    if (file_count_ > 2) v_->eos = 2;
  }
  struct {
    const char *key;
    int32_t *id;
  } const ids[] = {
      {"tokenizer.ggml.bos_token_id", &v_->bos},         {"tokenizer.ggml.eos_token_id", &v_->eos},
      {"tokenizer.ggml.eot_token_id", &v_->eot},         {"tokenizer.ggml.eom_token_id", &v_->eom},
      {"tokenizer.ggml.unknown_token_id", &v_->unknown}, {"tokenizer.ggml.padding_token_id", &v_->padding},
  };
  for (const auto &id : ids)
    if (Status status = read_id(id.key, id.id, failure)) return status;
  return kOk;
}

Status VocabularyReader::read_flags(Failure *failure) {
  static const char kAddBos[] = "tokenizer.ggml.add_bos_token", kAddEos[] = "tokenizer.ggml.add_eos_token";
  v_->add_bos = default_add_bos_ && v_->bos >= 0;
  v_->add_eos = false;
  v_->add_space_prefix = v_->model == TokenizerModel::kLlama;
  bool space_prefix = v_->add_space_prefix;
  if (Status status = gguf_.get_bool(kAddBos, Need::kOptional, &v_->add_bos, failure)) return status;
  if (Status status = gguf_.get_bool(kAddEos, Need::kOptional, &v_->add_eos, failure)) return status;
  if (Status status = gguf_.get_bool("tokenizer.ggml.add_space_prefix", Need::kOptional, &space_prefix, failure)) return status;
  v_->add_space_prefix = v_->add_space_prefix && space_prefix;
  if ((v_->add_bos && v_->bos < 0) || (v_->add_eos && v_->eos < 0))
    return fail(failure, kFormat, "key '%s' is true and no key says which id that is", v_->add_bos && v_->bos < 0 ? kAddBos : kAddEos);
  return kOk;
}

Status VocabularyReader::read_template(Failure *failure) {
  GgufText text;
  if (Status status = gguf_.get_text(kTemplateKey, Need::kOptional, &text, failure)) return status;
  size_t count = static_cast<size_t>(text.bytes);  // no more than the file has
  if (Status status = v_->chat_template.allocate(account_, count, "the chat template", failure)) return status;
  return source_->read(text.offset, v_->chat_template.data(), count, kTemplateKey, failure);
}

Status VocabularyReader::make_texts(Failure *failure) {
  const Pieces &from = v_->pieces;
  Pieces *to = &v_->texts;
  if (Status status = to->offsets.allocate(account_, v_->count + 1, "the tokenizer's piece offsets", failure)) return status;
  if (Status status = to->bytes.allocate(account_, from.bytes.count(), "the tokenizer's pieces", failure)) return status;
  size_t used = 0;
  for (size_t i = 0; i < v_->count; i++) {
    to->offsets[i] = used;
    Bytes piece = from.at(i);
    const bool ordinary = v_->kind(i) == PieceKind::kNormal;
    for (size_t k = 0; k < piece.count; k++) {
      const bool space = ordinary && piece.count - k >= sizeof(kSpaceMark) && memcmp(piece.data + k, kSpaceMark, sizeof(kSpaceMark)) == 0;
      to->bytes[used++] = space ? ' ' : piece.data[k];
      if (space) k += sizeof(kSpaceMark) - 1;
    }
  }
  to->offsets[v_->count] = used;
  return kOk;
}

// In place: bytes are no more than their letters. Control, unknown and user-defined pieces are spelled as they are, and so are those that cannot be
// letters.
void VocabularyReader::decode_pieces() {
  Pieces *p = &v_->pieces;
  size_t used = 0, begin = 0;
  v_->longest_bytes = 0;
  for (size_t i = 0; i < v_->count; i++) {
    Bytes piece = {p->bytes.data() + begin, p->offsets[i + 1] - begin};
    begin = p->offsets[i + 1];
    p->offsets[i] = used;
    if (piece.count == 0) continue;
    unsigned char *to = p->bytes.data() + used;
    const bool as_it_is = is_special(v_->kind(i)) || v_->kind(i) == PieceKind::kUserDefined;
    size_t count = as_it_is ? SIZE_MAX : spelled_bytes(piece, to);
    if (count == SIZE_MAX) {
      count = piece.count;
      memmove(to, piece.data, count);
    }
    used += count;
    if (count > v_->longest_bytes) v_->longest_bytes = count;
  }
  p->offsets[v_->count] = used;
}

Status VocabularyReader::read(size_t wanted, Failure *failure) {
  if (Status status = read_model(failure)) return status;
  if (Status status = read_pieces(wanted, failure)) return status;
  if (Status status = read_scores(failure)) return status;
  if (Status status = read_kinds(failure)) return status;
  if (Status status = read_ids(failure)) return status;
  if (Status status = read_flags(failure)) return status;
  if (Status status = read_template(failure)) return status;
  if (Status status = index_pieces(failure)) return status;
  find_bytes();
  if (v_->model == TokenizerModel::kLlama) return make_texts(failure);
  if (Status status = read_merges(failure)) return status;
  decode_pieces();
  return kOk;
}

}  // namespace

Status looks_like_gguf(Source *source, bool *is_gguf, Failure *failure) {
  unsigned char first[4];
  size_t count = source->size_bytes() < sizeof(first) ? static_cast<size_t>(source->size_bytes()) : sizeof(first);
  if (Status status = source->read(0, first, count, "the first bytes", failure)) return status;
  *is_gguf = Gguf::is_gguf(first, count);
  return kOk;
}

Status read_gguf_vocabulary(Source *source, size_t wanted, Account *account, Vocabulary *vocabulary, Failure *failure) {
  Gguf gguf;
  if (Status status = gguf.open(source, account, failure)) return status;
  return VocabularyReader(source, gguf, account, vocabulary).read(wanted, failure);
}

}  // namespace proofinfer
