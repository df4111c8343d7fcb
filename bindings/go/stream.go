package proofinfer

// #include <proofinfer.h>
import "C"

import "unsafe"

// Stream turns token ids into whole UTF-8 characters as they come. One goroutine at a time; a second one gets [ErrBusy].
type Stream struct{ h *handle }

// NewStream starts a stream after the id previous ([NoToken]: none).
func (t *Tokenizer) NewStream(previous int32) (*Stream, error) {
	tokenizer, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer t.h.release()
	var ptr *C.proofinfer_stream
	var object *C.proofinfer_error
	if err := failure(C.proofinfer_stream_create(tokenizer, C.int32_t(previous), &ptr, &object), object); err != nil {
		return nil, err
	}
	s := &Stream{}
	s.h = newHandle(s, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_stream_free((*C.proofinfer_stream)(p)) })
	return s, nil
}

// Push takes one id and returns the text that it completes, which may be empty.
func (s *Stream) Push(token int32) (string, error) {
	return s.call(func(ptr *C.proofinfer_stream, buffer *C.char, capacity C.size_t, needed *C.size_t, object **C.proofinfer_error) C.int32_t {
		return C.proofinfer_stream_push(ptr, C.int32_t(token), buffer, capacity, needed, object)
	})
}

// Flush returns what is held back: nothing, or U+FFFD for an incomplete character.
func (s *Stream) Flush() (string, error) {
	return s.call(func(ptr *C.proofinfer_stream, buffer *C.char, capacity C.size_t, needed *C.size_t, object **C.proofinfer_error) C.int32_t {
		return C.proofinfer_stream_flush(ptr, buffer, capacity, needed, object)
	})
}

func (s *Stream) call(f func(*C.proofinfer_stream, *C.char, C.size_t, *C.size_t, **C.proofinfer_error) C.int32_t) (string, error) {
	p, err := s.h.acquire()
	if err != nil {
		return "", err
	}
	defer s.h.release()
	bytes, err := bytesOut(func(buffer *C.char, capacity C.size_t, needed *C.size_t) error {
		var object *C.proofinfer_error
		return failure(f((*C.proofinfer_stream)(p), buffer, capacity, needed, &object), object)
	})
	return string(bytes), err
}

// Close frees the stream.
func (s *Stream) Close() error {
	s.h.close()
	return nil
}
