// The extern "C" boundary: turns handles into objects, failures into error objects. Nothing below src/api sees the public header.
#ifndef PROOFINFER_API_BOUNDARY_H
#define PROOFINFER_API_BOUNDARY_H

#include "base/cancel.h"
#include "base/object.h"
#include "proofinfer.h"

namespace proofinfer {

// One call across the boundary: clears *error at the start, fills it from the failure at the end.
//
//   int32_t proofinfer_thing_do(proofinfer_thing *thing, proofinfer_error **error) {
//     Call call(error);
//     Thing *object = call.object<Thing>(thing, "thing");
//     if (!object) return call.end();
//     return call.end(object->do_it(call.failure()));
//   }
class Call {
 public:
  explicit Call(proofinfer_error **error) : error_(error) {
    if (error_) *error_ = nullptr;
  }
  Failure *failure() { return &failure_; }

  // The object behind a handle, or nullptr with kArgument for NULL and for a handle of another kind. `name` is the parameter's.
  template <typename T, typename HandleType>
  T *object(HandleType *handle, const char *name) {
    return static_cast<T *>(check(const_cast<Object *>(reinterpret_cast<const Object *>(handle)), T::kKind, name, false));
  }
  // The same, where NULL is allowed: then nullptr, and *this stays without a failure.
  template <typename T, typename HandleType>
  T *nullable_object(HandleType *handle, const char *name) {
    return static_cast<T *>(check(const_cast<Object *>(reinterpret_cast<const Object *>(handle)), T::kKind, name, true));
  }
  // kArgument unless pointer is set. Returns whether it is.
  bool need(const void *pointer, const char *name);
  // (pointer, count) in: NULL only with count 0.
  bool need_array(const void *pointer, size_t count, const char *name);
  // (buffer, capacity, needed) out: copies `count` elements of `element_bytes` if they fit, else kBufferTooSmall. `needed` may be nullptr.
  Status put(const void *from, size_t count, size_t element_bytes, void *buffer, size_t capacity, size_t *needed, const char *what);

  bool failed() const { return failure_.status != kOk; }
  // Ends the call with the failure, or with success if there is none. The status to return.
  int32_t end() { return end(failure_.status); }
  int32_t end(Status status);

 private:
  Object *check(Object *object, Kind kind, const char *name, bool nullable);

  proofinfer_error **error_;
  Failure failure_;
};

// Drops the caller's reference; a handle of another kind is left alone.
template <typename T, typename HandleType>
void free_handle(HandleType *handle) {
  T *object = Call(nullptr).nullable_object<T>(handle, "handle");
  Object::release(object);
}

}  // namespace proofinfer

#endif
