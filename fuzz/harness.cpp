#include "harness.h"

#include <cstdio>
#include <cstdlib>

#include "support/checkpoint.h"

namespace proofinfer_fuzz {

namespace {

struct Totals {
  unsigned long long executions = 0, loaded = 0;
} g_totals;

void print_totals() { std::fprintf(stderr, "executions %llu, loaded %llu\n", g_totals.executions, g_totals.loaded); }

uint64_t g_held_bytes = 0, g_peak_bytes = 0;

void *allocate(void *, size_t bytes, size_t alignment) {
  HOLDS(alignment != 0 && (alignment & (alignment - 1)) == 0 && alignment <= 4096 && bytes > 0);
  void *memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes) != 0) return nullptr;
  g_held_bytes += bytes;
  if (g_held_bytes > g_peak_bytes) g_peak_bytes = g_held_bytes;
  return memory;
}

void release(void *, void *memory, size_t bytes, size_t) {
  HOLDS(g_held_bytes >= bytes);
  g_held_bytes -= bytes;
  free(memory);
}

}  // namespace

void broken(const char *file, int line, const char *what) {
  std::fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
  std::abort();
}

void check_error(int32_t status, proofinfer_error *error) {
  HOLDS(status >= PROOFINFER_OK && status < PROOFINFER_E_INTERNAL);
  HOLDS((error == nullptr) == (status == PROOFINFER_OK));
  if (!error) return;
  HOLDS(proofinfer_error_code(error) == status);
  const char *message = proofinfer_error_message(error);
  HOLDS(message != nullptr && message[0] != 0);
  proofinfer_error_free(error);
}

proofinfer_options *make_measured_options() {
  Out<proofinfer_options> made;
  proofinfer_options *options = made.of(call(proofinfer_options_create, &made.handle));
  HOLDS(call(proofinfer_options_set_allocator, options, allocate, release, nullptr) == PROOFINFER_OK);
  return options;
}

Case::Case(size_t input_bytes) : input_bytes_(input_bytes), begin_bytes_(g_held_bytes), options_(make_measured_options()) {
  if (g_totals.executions++ == 0) std::atexit(print_totals);
  g_peak_bytes = g_held_bytes;
}

Case::~Case() {
  proofinfer_options_free(options_);
  HOLDS(g_held_bytes == begin_bytes_);
  HOLDS(g_peak_bytes - begin_bytes_ <= 4 * uint64_t(input_bytes_) + (uint64_t(16) << 20));
}

void Case::count_as_loaded() { g_totals.loaded++; }

namespace {

int64_t model_i64(proofinfer_model *model, int32_t property) {
  int64_t value = -1;
  HOLDS(call(proofinfer_model_get_i64, model, property, &value) == PROOFINFER_OK && value >= 0);
  return value;
}

int64_t tensor_i64(proofinfer_model *model, size_t index, int32_t property) {
  int64_t value = -1;
  HOLDS(call(proofinfer_model_tensor_get_i64, model, index, property, &value) == PROOFINFER_OK && value >= 0);
  return value;
}

// Tensors stand one behind the other from the header to the end of the file.
void check_tensors(proofinfer_model *model, size_t file_bytes) {
  constexpr size_t kMostTensors = 400;
  size_t count = proofinfer_model_tensor_count(model);
  HOLDS(count >= 11);
  int64_t end = tensor_i64(model, 0, PROOFINFER_TENSOR_FILE_OFFSET);
  HOLDS(end == 28 || end == 256);
  size_t shown = count < kMostTensors ? count : kMostTensors;
  for (size_t i = 0; i < shown; i++) {
    char name[64];
    size_t needed = 0;
    HOLDS(call(proofinfer_model_tensor_name, model, i, name, sizeof(name), &needed) == PROOFINFER_OK && needed > 0);
    HOLDS(tensor_i64(model, i, PROOFINFER_TENSOR_FILE_OFFSET) == end);
    end += tensor_i64(model, i, PROOFINFER_TENSOR_FILE_BYTES);
    HOLDS(tensor_i64(model, i, PROOFINFER_TENSOR_ROWS) > 0 && tensor_i64(model, i, PROOFINFER_TENSOR_COLUMNS) > 0);
  }
  HOLDS(shown < count || end == int64_t(file_bytes));
  int64_t value = -1;
  HOLDS(call(proofinfer_model_tensor_get_i64, model, count, PROOFINFER_TENSOR_ROWS, &value) == PROOFINFER_E_ARGUMENT && value == 0);
}

void check_logits(proofinfer_session *session, size_t position, size_t vocab_size) {
  const float *logits = nullptr;
  size_t count = 0;
  HOLDS(call(proofinfer_session_logits_view, session, position, &logits, &count) == PROOFINFER_OK && count == vocab_size);
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    std::memcpy(&bits, &logits[i], sizeof(bits));
    HOLDS((bits & 0x7fffffffu) <= 0x7f800000u || bits == 0x7fc00000u);  // one NaN
  }
}

}  // namespace

void check_packed_model(Case *c, proofinfer_model *model) {
  int64_t vocab_size = 0;
  HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_VOCAB_SIZE, &vocab_size) == PROOFINFER_OK && vocab_size > 0);
  HOLDS(call(proofinfer_options_set_i64, c->options(), PROOFINFER_TEXT("context_length"), int64_t(1)) == PROOFINFER_OK);
  Out<proofinfer_session> made;
  proofinfer_session *session = made.of(call(proofinfer_session_create, model, c->options(), &made.handle));
  HOLDS(session != nullptr);
  const int32_t last = int32_t(vocab_size - 1);
  HOLDS(call(proofinfer_session_append, session, &last, size_t(1), PROOFINFER_LOGITS_LAST, nullptr) == PROOFINFER_OK);
  proofinfer_session_free(session);
  const size_t count = proofinfer_model_tensor_count(model);
  for (size_t i = 0; i < count && i < 400; i++) {
    char name[64];
    size_t needed = 0;
    int64_t offset = 0, bytes = 0, file_bytes = 0;
    HOLDS(call(proofinfer_model_tensor_name, model, i, name, sizeof(name), &needed) == PROOFINFER_OK);
    HOLDS(call(proofinfer_model_tensor_get_i64, model, i, PROOFINFER_TENSOR_FILE_OFFSET, &offset) == PROOFINFER_OK);
    HOLDS(call(proofinfer_model_tensor_get_i64, model, i, PROOFINFER_TENSOR_FILE_BYTES, &bytes) == PROOFINFER_OK);
    HOLDS(call(proofinfer_model_get_i64, model, PROOFINFER_MODEL_FILE_BYTES, &file_bytes) == PROOFINFER_OK);
    HOLDS(offset >= 4096 && bytes > 0 && offset + bytes <= file_bytes);
  }
}

void check_model(Case *c, proofinfer_model *model, size_t file_bytes, size_t context) {
  HOLDS(model_i64(model, PROOFINFER_MODEL_FILE_BYTES) == int64_t(file_bytes));
  HOLDS(model_i64(model, PROOFINFER_MODEL_HEAD_SIZE) * model_i64(model, PROOFINFER_MODEL_N_HEADS) ==
        model_i64(model, PROOFINFER_MODEL_DIM));
  HOLDS(model_i64(model, PROOFINFER_MODEL_PARAMETER_COUNT) < int64_t(file_bytes));
  HOLDS(model_i64(model, PROOFINFER_MODEL_WEIGHT_BYTES) <= model_i64(model, PROOFINFER_MODEL_MEMORY_BYTES));
  for (int32_t text : {PROOFINFER_MODEL_FORMAT, PROOFINFER_MODEL_ELEMENT_TYPE, PROOFINFER_MODEL_ISA})
    HOLDS(proofinfer_model_get_text(model, text)[0] != 0);
  check_tensors(model, file_bytes);
  check_evaluation(c, model, context);
}

void check_evaluation(Case *c, proofinfer_model *model, size_t context) {
  const size_t vocab_size = size_t(model_i64(model, PROOFINFER_MODEL_VOCAB_SIZE));
  const size_t seq_len = size_t(model_i64(model, PROOFINFER_MODEL_SEQ_LEN));
  if (context > seq_len) context = seq_len;
  HOLDS(call(proofinfer_options_set_i64, c->options(), PROOFINFER_TEXT("context_length"), int64_t(context)) == PROOFINFER_OK);
  Out<proofinfer_session> made;
  proofinfer_session *session = made.of(call(proofinfer_session_create, model, c->options(), &made.handle));
  HOLDS(session != nullptr);
  int32_t outside[2] = {int32_t(vocab_size), -1};
  HOLDS(call(proofinfer_session_append, session, &outside[0], size_t(1), PROOFINFER_LOGITS_ALL, nullptr) == PROOFINFER_E_ARGUMENT);
  HOLDS(call(proofinfer_session_append, session, &outside[1], size_t(1), PROOFINFER_LOGITS_ALL, nullptr) == PROOFINFER_E_ARGUMENT);
  std::vector<int32_t> tokens(context, 0);
  tokens[context - 1] = int32_t(vocab_size - 1);
  HOLDS(call(proofinfer_session_append, session, tokens.data(), context, PROOFINFER_LOGITS_ALL, nullptr) == PROOFINFER_OK);
  for (size_t i = 0; i < context; i++) check_logits(session, i, vocab_size);
  HOLDS(call(proofinfer_session_append, session, tokens.data(), size_t(1), PROOFINFER_LOGITS_ALL, nullptr) == PROOFINFER_E_CONTEXT);
  HOLDS(proofinfer_session_position(session) == context);
  proofinfer_session_free(session);
}

namespace {

void put_piece(std::vector<uint8_t> *file, const char *text, float score) {
  proofinfer_test::put_f32(file, score);
  proofinfer_test::put_i32(file, int32_t(std::strlen(text)));
  file->insert(file->end(), text, text + std::strlen(text));
}

std::vector<uint8_t> make_fixed_tokenizer() {
  std::vector<uint8_t> file = {8, 0, 0, 0};
  for (const char *special : {"<unk>", "\n<s>\n", "\n</s>\n"}) put_piece(&file, special, 0.0f);
  for (unsigned byte = 0; byte < 256; byte++) {
    char spelled[8];
    std::snprintf(spelled, sizeof(spelled), "<0x%02X>", byte);
    put_piece(&file, spelled, 0.0f);
  }
  float score = 0.0f;
  for (const char *text : {" ", "a", "b", "ab", " a", " ab", "the", " the", "\xC3\xA9"}) put_piece(&file, text, score -= 1.0f);
  return file;
}

}  // namespace

const std::vector<uint8_t> &fixed_tokenizer() {
  static const std::vector<uint8_t> bytes = make_fixed_tokenizer();
  return bytes;
}

const std::vector<uint8_t> &fixed_checkpoint(int format) {
  static const proofinfer_test::Shape shape = {8, 12, 1, 2, 1, kFixedVocabSize, 80};
  static const std::vector<uint8_t> bytes[3] = {
      proofinfer_test::checkpoint(proofinfer_test::Format::kLegacy, shape, 3, 4),
      proofinfer_test::checkpoint(proofinfer_test::Format::kVersion1, shape, 3, 4),
      proofinfer_test::checkpoint(proofinfer_test::Format::kVersion2, shape, 3, 4),
  };
  return bytes[format];
}

bool is_utf8(const char *text, size_t bytes) {
  const unsigned char *p = reinterpret_cast<const unsigned char *>(text), *end = p + bytes;
  while (p < end) {
    int more = *p < 0x80 ? 0 : *p >= 0xC2 && *p <= 0xDF ? 1 : *p >= 0xE0 && *p <= 0xEF ? 2 : *p >= 0xF0 && *p <= 0xF4 ? 3 : -1;
    if (more < 0 || end - p <= more) return false;
    if ((*p == 0xE0 && p[1] < 0xA0) || (*p == 0xED && p[1] > 0x9F) || (*p == 0xF0 && p[1] < 0x90) || (*p == 0xF4 && p[1] > 0x8F))
      return false;
    for (int i = 1; i <= more; i++)
      if ((p[i] & 0xC0) != 0x80) return false;
    p += 1 + more;
  }
  return true;
}

}  // namespace proofinfer_fuzz
