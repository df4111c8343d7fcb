#include "model/tokenizer.h"

#include "api/options.h"
#include "model/stream.h"

namespace proofinfer {

constexpr uint32_t kEncodeFlags = PROOFINFER_ENCODE_BOS | PROOFINFER_ENCODE_EOS | PROOFINFER_ENCODE_SPECIAL | PROOFINFER_ENCODE_DEFAULT;

static_assert(PROOFINFER_PIECE_NORMAL == int32_t(PieceKind::kNormal) && PROOFINFER_PIECE_UNKNOWN == int32_t(PieceKind::kUnknown) &&
                  PROOFINFER_PIECE_CONTROL == int32_t(PieceKind::kControl) &&
                  PROOFINFER_PIECE_USER_DEFINED == int32_t(PieceKind::kUserDefined) &&
                  PROOFINFER_PIECE_UNUSED == int32_t(PieceKind::kUnused) && PROOFINFER_PIECE_BYTE == int32_t(PieceKind::kByte),
              "the format's values");

// Opens a tokenizer from a source that was opened by one of the two entry points.
static Status open_tokenizer(Call *call, Source *source, int32_t vocab_size, const proofinfer_options *options,
                             proofinfer_tokenizer **tokenizer) {
  Settings settings;
  if (!read_settings(call, options, &settings)) return call->failure()->status;
  Tokenizer *made = nullptr;
  Status status = Tokenizer::create(source, vocab_size, settings, &made, call->failure());
  if (status == kOk) *tokenizer = reinterpret_cast<proofinfer_tokenizer *>(made);
  return status;
}

// The arguments that both have in common.
static bool check_open(Call *call, int32_t vocab_size, proofinfer_tokenizer **tokenizer) {
  if (!call->need(tokenizer, "tokenizer")) return false;
  *tokenizer = nullptr;
  if (vocab_size >= 0) return true;
  fail(call->failure(), kArgument, "vocab_size is %d; expected 0 or more", vocab_size);
  return false;
}

static bool check_id(Call *call, const Tokenizer &tokenizer, int32_t id, int32_t lowest, const char *name) {
  if (id >= lowest && id < tokenizer.vocab_size()) return true;
  fail(call->failure(), kArgument, "%s is %d; expected %d to %d", name, id, lowest, tokenizer.vocab_size() - 1);
  return false;
}

static bool check_flags(Call *call, uint32_t flags, uint32_t known, const char *names) {
  if ((flags & ~known) == 0) return true;
  fail(call->failure(), kArgument, "flags are 0x%x; expected %s bits, 0x%x at most", flags, names, known);
  return false;
}

static Status get_i64(const Tokenizer &t, int32_t property, int64_t *value, Failure *failure) {
  const Vocabulary &v = t.vocabulary();
  switch (property) {
    case PROOFINFER_TOKENIZER_BOS: *value = v.bos; return kOk;
    case PROOFINFER_TOKENIZER_EOS: *value = v.eos; return kOk;
    case PROOFINFER_TOKENIZER_EOT: *value = v.eot; return kOk;
    case PROOFINFER_TOKENIZER_EOM: *value = v.eom; return kOk;
    case PROOFINFER_TOKENIZER_UNKNOWN: *value = v.unknown; return kOk;
    case PROOFINFER_TOKENIZER_PADDING: *value = v.padding; return kOk;
    case PROOFINFER_TOKENIZER_ADD_BOS: *value = v.add_bos; return kOk;
    case PROOFINFER_TOKENIZER_ADD_EOS: *value = v.add_eos; return kOk;
    case PROOFINFER_TOKENIZER_ADD_SPACE_PREFIX: *value = v.add_space_prefix; return kOk;
    default: return fail(failure, kArgument, "property is %d; expected a PROOFINFER_TOKENIZER_ integer property", property);
  }
}

static const char *model_name(TokenizerModel model) {
  if (model == TokenizerModel::kLlama2c) return "llama2.c";
  return model == TokenizerModel::kLlama ? "llama" : "gpt2";
}

static EncodeOptions encode_options(const Vocabulary &v, uint32_t flags) {
  const bool standard = flags & PROOFINFER_ENCODE_DEFAULT;
  EncodeOptions options;
  options.bos = (flags & PROOFINFER_ENCODE_BOS) || (standard && v.add_bos);
  options.eos = (flags & PROOFINFER_ENCODE_EOS) || (standard && v.add_eos);
  options.special = flags & PROOFINFER_ENCODE_SPECIAL;
  return options;
}

// The object behind a handle, alive for the time of one call.
static Ref<const Tokenizer> hold(Call *call, const proofinfer_tokenizer *tokenizer) {
  const Tokenizer *object = call->object<const Tokenizer>(tokenizer, "tokenizer");
  return object ? Ref<const Tokenizer>::share(object) : Ref<const Tokenizer>();
}

}  // namespace proofinfer

using namespace proofinfer;

extern "C" {

int32_t proofinfer_tokenizer_open(const char *path, size_t path_bytes, int32_t vocab_size, const proofinfer_options *options,
                                  proofinfer_tokenizer **tokenizer, proofinfer_error **error) {
  Call call(error);
  if (!check_open(&call, vocab_size, tokenizer) || !call.need(path, "path")) return call.end();
  Source source;
  if (source.open_file(path, path_bytes, call.failure()) != kOk) return call.end();
  return call.end(open_tokenizer(&call, &source, vocab_size, options, tokenizer));
}

int32_t proofinfer_tokenizer_open_memory(const void *data, size_t data_bytes, int32_t vocab_size, const proofinfer_options *options,
                                         proofinfer_tokenizer **tokenizer, proofinfer_error **error) {
  Call call(error);
  if (!check_open(&call, vocab_size, tokenizer) || !call.need_array(data, data_bytes, "data")) return call.end();
  Source source;
  source.open_memory(data, data_bytes);
  return call.end(open_tokenizer(&call, &source, vocab_size, options, tokenizer));
}

void proofinfer_tokenizer_free(proofinfer_tokenizer *tokenizer) { free_handle<Tokenizer>(tokenizer); }

int32_t proofinfer_tokenizer_vocab_size(const proofinfer_tokenizer *tokenizer) {
  Call call(nullptr);
  const Tokenizer *t = call.object<const Tokenizer>(tokenizer, "tokenizer");
  return t ? t->vocab_size() : -1;
}

int32_t proofinfer_tokenizer_bos(const proofinfer_tokenizer *tokenizer) {
  Call call(nullptr);
  const Tokenizer *t = call.object<const Tokenizer>(tokenizer, "tokenizer");
  return t ? t->bos() : -1;
}

int32_t proofinfer_tokenizer_eos(const proofinfer_tokenizer *tokenizer) {
  Call call(nullptr);
  const Tokenizer *t = call.object<const Tokenizer>(tokenizer, "tokenizer");
  return t ? t->eos() : -1;
}

int32_t proofinfer_tokenizer_get_i64(const proofinfer_tokenizer *tokenizer, int32_t property, int64_t *value, proofinfer_error **error) {
  Call call(error);
  if (value) *value = 0;
  const Tokenizer *t = call.object<const Tokenizer>(tokenizer, "tokenizer");
  if (!t || !call.need(value, "value")) return call.end();
  return call.end(get_i64(*t, property, value, call.failure()));
}

const char *proofinfer_tokenizer_get_text(const proofinfer_tokenizer *tokenizer, int32_t property) {
  Call call(nullptr);
  const Tokenizer *t = call.object<const Tokenizer>(tokenizer, "tokenizer");
  if (!t) return nullptr;
  switch (property) {
    case PROOFINFER_TOKENIZER_MODEL: return model_name(t->vocabulary().model);
    case PROOFINFER_TOKENIZER_PRE: return t->vocabulary().pre_name;
    default: return nullptr;
  }
}

int32_t proofinfer_tokenizer_piece_kind(const proofinfer_tokenizer *tokenizer, int32_t token, int32_t *kind, proofinfer_error **error) {
  Call call(error);
  if (kind) *kind = 0;
  const Tokenizer *t = call.object<const Tokenizer>(tokenizer, "tokenizer");
  if (!t || !call.need(kind, "kind") || !check_id(&call, *t, token, 0, "token")) return call.end();
  *kind = static_cast<int32_t>(t->kind(token));
  return call.end();
}

int32_t proofinfer_tokenizer_piece(const proofinfer_tokenizer *tokenizer, int32_t token, char *buffer, size_t capacity, size_t *needed,
                                   float *score, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  Ref<const Tokenizer> t = hold(&call, tokenizer);
  if (!t || !check_id(&call, *t.get(), token, 0, "token")) return call.end();
  Bytes piece = t->piece(token);
  Status status = call.put(piece.data, piece.count, 1, buffer, capacity, needed, "piece");
  if (status == kOk && score) *score = t->score(token);
  return call.end(status);
}

int32_t proofinfer_tokenizer_encode(const proofinfer_tokenizer *tokenizer, const char *text, size_t text_bytes, uint32_t flags,
                                    int32_t *tokens, size_t capacity, size_t *needed, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  if (!call.need_array(text, text_bytes, "text") || !call.need_array(tokens, capacity, "tokens") ||
      !check_flags(&call, flags, kEncodeFlags, "PROOFINFER_ENCODE_"))
    return call.end();
  Ref<const Tokenizer> t = hold(&call, tokenizer);
  if (!t) return call.end();
  Buffer<int32_t> ids;
  size_t count = 0;
  EncodeOptions options = encode_options(t->vocabulary(), flags);
  if (t->encode(text, text_bytes, options, &ids, &count, call.failure()) != kOk) return call.end();
  return call.end(call.put(ids.data(), count, sizeof(int32_t), tokens, capacity, needed, "tokens"));
}

int32_t proofinfer_tokenizer_decode(const proofinfer_tokenizer *tokenizer, int32_t previous, int32_t token, uint32_t flags, char *buffer,
                                    size_t capacity, size_t *needed, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  Ref<const Tokenizer> t = hold(&call, tokenizer);
  if (!t || !check_id(&call, *t.get(), previous, -1, "previous") || !check_id(&call, *t.get(), token, 0, "token") ||
      !check_flags(&call, flags, PROOFINFER_DECODE_SPELLED, "PROOFINFER_DECODE_"))
    return call.end();
  Bytes bytes = t->decode(previous, token, flags & PROOFINFER_DECODE_SPELLED);
  return call.end(call.put(bytes.data, bytes.count, 1, buffer, capacity, needed, "text"));
}

int32_t proofinfer_stream_create(const proofinfer_tokenizer *tokenizer, int32_t previous, proofinfer_stream **stream,
                                 proofinfer_error **error) {
  Call call(error);
  if (!call.need(stream, "stream")) return call.end();
  *stream = nullptr;
  Ref<const Tokenizer> t = hold(&call, tokenizer);
  if (!t) return call.end();
  Stream *made = nullptr;
  Status status = Stream::create(t.get(), previous, &made, call.failure());
  if (status == kOk) *stream = reinterpret_cast<proofinfer_stream *>(made);
  return call.end(status);
}

int32_t proofinfer_stream_push(proofinfer_stream *stream, int32_t token, char *buffer, size_t capacity, size_t *needed,
                               proofinfer_error **error) {
  Call call(error);
  size_t unasked;
  if (!needed) needed = &unasked;
  *needed = 0;
  Stream *s = call.object<Stream>(stream, "stream");
  if (!s || !call.need_array(buffer, capacity, "buffer")) return call.end();
  Ref<Stream> held = Ref<Stream>::share(s);
  BusyScope lock(s->busy());
  if (!lock.entered()) return call.end(fail(call.failure(), kBusy, "another thread is inside this stream"));
  return call.end(s->push(token, buffer, capacity, needed, call.failure()));
}

int32_t proofinfer_stream_flush(proofinfer_stream *stream, char *buffer, size_t capacity, size_t *needed, proofinfer_error **error) {
  Call call(error);
  size_t unasked;
  if (!needed) needed = &unasked;
  *needed = 0;
  Stream *s = call.object<Stream>(stream, "stream");
  if (!s || !call.need_array(buffer, capacity, "buffer")) return call.end();
  Ref<Stream> held = Ref<Stream>::share(s);
  BusyScope lock(s->busy());
  if (!lock.entered()) return call.end(fail(call.failure(), kBusy, "another thread is inside this stream"));
  return call.end(s->flush(buffer, capacity, needed, call.failure()));
}

void proofinfer_stream_free(proofinfer_stream *stream) { free_handle<Stream>(stream); }

}  // extern "C"
