package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"context"
	"errors"
)

// Code is a status of the library. Codes are errors themselves: errors.Is(err, proofinfer.ErrContext) asks for one.
type Code int32

// The status codes.
const (
	ErrArgument     Code = C.PROOFINFER_E_ARGUMENT     // an argument is out of its bounds
	ErrMemory       Code = C.PROOFINFER_E_MEMORY       // memory could not be had
	ErrLimit        Code = C.PROOFINFER_E_LIMIT        // a memory limit would be exceeded
	ErrIO           Code = C.PROOFINFER_E_IO           // the operating system refused
	ErrUnrecognized Code = C.PROOFINFER_E_UNRECOGNIZED // the bytes are no known format
	ErrTruncated    Code = C.PROOFINFER_E_TRUNCATED    // the bytes end too early
	ErrFormat       Code = C.PROOFINFER_E_FORMAT       // a value in the file is invalid
	ErrUnsupported  Code = C.PROOFINFER_E_UNSUPPORTED  // the file asks for what the library does not do
	ErrContext      Code = C.PROOFINFER_E_CONTEXT      // the session has no room for more tokens
	ErrBusy         Code = C.PROOFINFER_E_BUSY         // another goroutine is inside this handle
	ErrCancelled    Code = C.PROOFINFER_E_CANCELLED    // the context ended; nothing changed
	ErrBuffer       Code = C.PROOFINFER_E_BUFFER       // a buffer that the caller gave is too small
	ErrNotFinite    Code = C.PROOFINFER_E_NOT_FINITE   // logits contain NaN or infinity
	ErrState        Code = C.PROOFINFER_E_STATE        // the handle is not in the state that the call needs
	ErrInternal     Code = C.PROOFINFER_E_INTERNAL     // the library contradicts itself
)

// ErrClosed is returned by every call on a handle after its Close.
var ErrClosed = errors.New("proofinfer: the handle is closed")

// ErrVersion is wrapped by the error of a library whose major version is not the one that this package was compiled for.
var ErrVersion = errors.New("proofinfer: version mismatch")

// Name is the code's name in the C API, for example "PROOFINFER_E_IO".
func (c Code) Name() string { return C.GoString(C.proofinfer_status_name(C.int32_t(c))) }

// Error makes the code an error.
func (c Code) Error() string { return "proofinfer: " + c.Name() }

// Error is one failure: what, where, expected and found. errors.Is finds its Code and, after a cancellation, the context's error.
type Error struct {
	Code    Code
	Message string
	causes  []error
}

// Error is the message.
func (e *Error) Error() string { return "proofinfer: " + e.Message }

// Unwrap gives the code and the causes to errors.Is and errors.As.
func (e *Error) Unwrap() []error { return append([]error{e.Code}, e.causes...) }

// failure turns a status and its error object, which it frees, into an error; nil for PROOFINFER_OK.
func failure(status C.int32_t, object *C.proofinfer_error) error {
	if status == C.PROOFINFER_OK {
		return nil
	}
	defer C.proofinfer_error_free(object)
	return &Error{Code: Code(status), Message: C.GoString(C.proofinfer_error_message(object))}
}

func busy(what string) error {
	return &Error{Code: ErrBusy, Message: "another goroutine is inside this " + what}
}

// cancelled is the error of an operation that ctx stopped.
func cancelled(ctx context.Context, message string) error {
	e := &Error{Code: ErrCancelled, Message: message + ": " + ctx.Err().Error(), causes: []error{ctx.Err()}}
	if cause := context.Cause(ctx); cause != ctx.Err() {
		e.causes = append(e.causes, cause)
	}
	return e
}

// withContext adds the context's error to a cancellation that came from it.
func withContext(ctx context.Context, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Code == ErrCancelled && ctx.Err() != nil {
		return cancelled(ctx, e.Message)
	}
	return err
}
