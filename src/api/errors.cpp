#include <stdlib.h>
#include <string.h>

#include "api/boundary.h"
#include "base/os.h"

using proofinfer::Kind;

// One failure as the caller holds it. The object for "no memory even for an error" is static and never freed.
struct proofinfer_error {
  Kind kind;
  int32_t code;
  const char *message;
  char text[1];  // [message bytes + 1], when allocated
};

static const proofinfer_error kNoMemoryForError = {Kind::kError, PROOFINFER_E_MEMORY, "no memory for the error message", {0}};

// Neither NULL nor a handle of another kind.
static bool is_error(const proofinfer_error *error) { return error && error->kind == Kind::kError; }

namespace proofinfer {

static_assert(kOk == PROOFINFER_OK && kArgument == PROOFINFER_E_ARGUMENT && kMemory == PROOFINFER_E_MEMORY &&
                  kLimit == PROOFINFER_E_LIMIT && kIo == PROOFINFER_E_IO && kUnrecognized == PROOFINFER_E_UNRECOGNIZED &&
                  kTruncated == PROOFINFER_E_TRUNCATED && kFormat == PROOFINFER_E_FORMAT && kUnsupported == PROOFINFER_E_UNSUPPORTED &&
                  kContext == PROOFINFER_E_CONTEXT && kBusy == PROOFINFER_E_BUSY && kCancelled == PROOFINFER_E_CANCELLED &&
                  kBufferTooSmall == PROOFINFER_E_BUFFER && kNotFinite == PROOFINFER_E_NOT_FINITE && kState == PROOFINFER_E_STATE &&
                  kInternal == PROOFINFER_E_INTERNAL,
              "internal and public status codes must agree");

static const proofinfer_error *make_error(const Failure &failure) {
  size_t length = strlen(failure.message);
  proofinfer_error *made = static_cast<proofinfer_error *>(os_heap_allocate(sizeof(proofinfer_error) + length, alignof(proofinfer_error)));
  if (!made) return &kNoMemoryForError;
  made->kind = Kind::kError;
  made->code = failure.status;
  memcpy(made->text, failure.message, length + 1);
  made->message = made->text;
  return made;
}

int32_t Call::end(Status status) {
  if (status == kOk) return PROOFINFER_OK;
  if (!error_) return status;
  *error_ = const_cast<proofinfer_error *>(make_error(failure_));
  return (*error_)->code;
}

bool Call::need(const void *pointer, const char *name) {
  if (pointer) return true;
  fail(&failure_, kArgument, "%s is NULL", name);
  return false;
}

bool Call::need_array(const void *pointer, size_t count, const char *name) {
  if (pointer || count == 0) return true;
  fail(&failure_, kArgument, "%s is NULL with a length of %zu", name, count);
  return false;
}

Status Call::put(const void *from, size_t count, size_t element_bytes, void *buffer, size_t capacity, size_t *needed, const char *what) {
  if (needed) *needed = count;
  if (!buffer && capacity) return fail(&failure_, kArgument, "buffer is NULL with a capacity of %zu", capacity);
  if (capacity < count) return fail(&failure_, kBufferTooSmall, "%s: needs a capacity of %zu; found %zu", what, count, capacity);
  if (count) memcpy(buffer, from, count * element_bytes);
  return kOk;
}

static const char *kind_name(Kind kind) {
  switch (kind) {
    case Kind::kError: return "an error";
    case Kind::kOptions: return "options";
    case Kind::kCancel: return "a cancel";
    case Kind::kModel: return "a model";
    case Kind::kTokenizer: return "a tokenizer";
    case Kind::kStream: return "a stream";
    case Kind::kSession: return "a session";
    case Kind::kBatch: return "a batch";
    case Kind::kSampler: return "a sampler";
    case Kind::kGeneration: return "a generation";
    case Kind::kScheduler: return "a scheduler";
    case Kind::kLedger: break;  // behind no handle
  }
  return "no handle of this library, or a freed one";
}

Object *Call::check(Object *object, Kind kind, const char *name, bool nullable) {
  if (!object) {
    if (!nullable) fail(&failure_, kArgument, "%s is NULL; expected %s", name, kind_name(kind));
    return nullptr;
  }
  if (object->kind() == kind) return object;
  fail(&failure_, kArgument, "%s is %s; expected %s", name, kind_name(object->kind()), kind_name(kind));
  return nullptr;
}

}  // namespace proofinfer

extern "C" {

int32_t proofinfer_error_code(const proofinfer_error *error) { return is_error(error) ? error->code : PROOFINFER_OK; }

const char *proofinfer_error_message(const proofinfer_error *error) { return is_error(error) ? error->message : ""; }

void proofinfer_error_free(proofinfer_error *error) {
  if (is_error(error) && error != &kNoMemoryForError) proofinfer::os_heap_free(error);
}

const char *proofinfer_status_name(int32_t status) {
  switch (status) {
    case PROOFINFER_OK: return "PROOFINFER_OK";
    case PROOFINFER_E_ARGUMENT: return "PROOFINFER_E_ARGUMENT";
    case PROOFINFER_E_MEMORY: return "PROOFINFER_E_MEMORY";
    case PROOFINFER_E_LIMIT: return "PROOFINFER_E_LIMIT";
    case PROOFINFER_E_IO: return "PROOFINFER_E_IO";
    case PROOFINFER_E_UNRECOGNIZED: return "PROOFINFER_E_UNRECOGNIZED";
    case PROOFINFER_E_TRUNCATED: return "PROOFINFER_E_TRUNCATED";
    case PROOFINFER_E_FORMAT: return "PROOFINFER_E_FORMAT";
    case PROOFINFER_E_UNSUPPORTED: return "PROOFINFER_E_UNSUPPORTED";
    case PROOFINFER_E_CONTEXT: return "PROOFINFER_E_CONTEXT";
    case PROOFINFER_E_BUSY: return "PROOFINFER_E_BUSY";
    case PROOFINFER_E_CANCELLED: return "PROOFINFER_E_CANCELLED";
    case PROOFINFER_E_BUFFER: return "PROOFINFER_E_BUFFER";
    case PROOFINFER_E_NOT_FINITE: return "PROOFINFER_E_NOT_FINITE";
    case PROOFINFER_E_STATE: return "PROOFINFER_E_STATE";
    case PROOFINFER_E_INTERNAL: return "PROOFINFER_E_INTERNAL";
    default: return "PROOFINFER_E_?";
  }
}

int32_t proofinfer_cancel_create(proofinfer_cancel **cancel, proofinfer_error **error) {
  proofinfer::Call call(error);
  if (!call.need(cancel, "cancel")) return call.end();
  *cancel = reinterpret_cast<proofinfer_cancel *>(
      proofinfer::Object::make<proofinfer::Cancel>(proofinfer::MemoryHooks(), 0, "cancel", call.failure()));
  return call.end();
}

}  // extern "C"

namespace {

// nullptr also for a handle of another kind. Formats nothing, so that a signal handler may go through it.
const proofinfer::Cancel *cancel_of(const proofinfer_cancel *handle) {
  const proofinfer::Cancel *cancel = reinterpret_cast<const proofinfer::Cancel *>(handle);
  return cancel && cancel->kind() == Kind::kCancel ? cancel : nullptr;
}
proofinfer::Cancel *cancel_of(proofinfer_cancel *handle) {
  return const_cast<proofinfer::Cancel *>(cancel_of(static_cast<const proofinfer_cancel *>(handle)));
}

}  // namespace

extern "C" {

void proofinfer_cancel_request(proofinfer_cancel *cancel) {
  if (proofinfer::Cancel *c = cancel_of(cancel)) c->request();
}

void proofinfer_cancel_reset(proofinfer_cancel *cancel) {
  if (proofinfer::Cancel *c = cancel_of(cancel)) c->reset();
}

int32_t proofinfer_cancel_requested(const proofinfer_cancel *cancel) {
  const proofinfer::Cancel *c = cancel_of(cancel);
  return c && c->requested();
}

void proofinfer_cancel_progress(const proofinfer_cancel *cancel, uint64_t *done, uint64_t *total) {
  const proofinfer::Cancel *c = cancel_of(cancel);
  if (done) *done = c ? c->done() : 0;
  if (total) *total = c ? c->total() : 0;
}

void proofinfer_cancel_free(proofinfer_cancel *cancel) { proofinfer::free_handle<proofinfer::Cancel>(cancel); }

}  // extern "C"
