package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"context"
	"fmt"
	"sync"
	"unsafe"
)

// Session is one sequence of tokens and its KV cache. One goroutine at a time; a second one gets [ErrBusy].
type Session struct {
	h             *handle
	contextLength int
	vocabSize     int
	// Written by what moves the session or drops its logits (append, rewind, generation, batch), read by a view of the logits. Only ever
	// tried, never waited for.
	moving sync.RWMutex
}

// Logits says of which appended positions the logits are kept.
type Logits int32

const (
	NoLogits   Logits = C.PROOFINFER_LOGITS_NONE // of none
	LastLogits Logits = C.PROOFINFER_LOGITS_LAST // of the last one
	AllLogits  Logits = C.PROOFINFER_LOGITS_ALL  // of every one
)

// NewSession makes an empty sequence with room for [ContextLength] positions. Scope of the options: session.
func (m *Model) NewSession(options ...Option) (*Session, error) {
	p, err := m.h.acquire()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	var ptr *C.proofinfer_session
	err = withOptions(options, func(settings *C.proofinfer_options) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_session_create((*C.proofinfer_model)(p), settings, &ptr, &object), object)
	})
	if err != nil {
		return nil, err
	}
	return ownSession(ptr, m.info.VocabSize), nil
}

// ownSession takes over an object of the library.
func ownSession(ptr *C.proofinfer_session, vocabSize int) *Session {
	s := &Session{contextLength: int(C.proofinfer_session_context_length(ptr)), vocabSize: vocabSize}
	s.h = newHandle(s, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_session_free((*C.proofinfer_session)(p)) })
	return s
}

// Clone makes another session that holds the same tokens, and the logits of the last one if they are kept. Keys and values are shared until
// one of the two overwrites them, so that it takes no evaluation and little time. Without options it has the settings of s; with some, the
// defaults for the others, but for [ContextLength]. Scope of the options: session.
func (s *Session) Clone(options ...Option) (*Session, error) {
	source, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer s.h.release()
	var ptr *C.proofinfer_session
	clone := func(settings *C.proofinfer_options) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_session_clone(source, settings, &ptr, &object), object)
	}
	if len(options) == 0 {
		err = clone(nil)
	} else {
		err = withOptions(options, clone)
	}
	if err != nil {
		return nil, err
	}
	return ownSession(ptr, s.vocabSize), nil
}

// Save gives what the session holds as bytes, for [Session.Restore] here, in another process or on another machine. Equal states give
// equal bytes.
func (s *Session) Save() ([]byte, error) {
	ptr, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer s.h.release()
	return bytesOut(func(buffer *C.char, capacity C.size_t, needed *C.size_t) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_session_save(ptr, unsafe.Pointer(buffer), capacity, needed, &object), object)
	})
}

// Restore replaces what the session holds by a saved state. On failure (changed bytes, another model's, no room) the session is as before.
func (s *Session) Restore(state []byte) error {
	return s.move(func(ptr *C.proofinfer_session) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_session_restore(ptr, unsafe.Pointer(unsafe.SliceData(state)), C.size_t(len(state)), &object), object)
	})
}

// Close frees the session. A generation or a batch that uses it keeps what it needs.
func (s *Session) Close() error {
	s.h.close()
	return nil
}

// ContextLength is the number of positions that there is room for.
func (s *Session) ContextLength() int { return s.contextLength }

// acquire gives the C object for one call that ends with release.
func (s *Session) acquire() (*C.proofinfer_session, error) {
	p, err := s.h.acquire()
	return (*C.proofinfer_session)(p), err
}

// move runs a call that moves the session, alone.
func (s *Session) move(call func(*C.proofinfer_session) error) error {
	ptr, err := s.acquire()
	if err != nil {
		return err
	}
	defer s.h.release()
	if !s.moving.TryLock() {
		return busy("session")
	}
	defer s.moving.Unlock()
	return call(ptr)
}

// Append evaluates tokens and keeps the logits asked for; those of an earlier append are dropped. Any split of a sequence into appends
// gives the same bits. On failure the session is as before; its logits are gone only after a cancellation.
func (s *Session) Append(ctx context.Context, tokens []int32, logits Logits) error {
	return s.move(func(ptr *C.proofinfer_session) error {
		return cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
			p, n := ids(tokens)
			var object *C.proofinfer_error
			return failure(C.proofinfer_session_append(ptr, p, n, C.int32_t(logits), cancel, &object), object)
		})
	})
}

// Rewind forgets everything from position on, so that the next token lands there.
func (s *Session) Rewind(position int) error {
	at, err := positionOf(position)
	if err != nil {
		return err
	}
	return s.move(func(ptr *C.proofinfer_session) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_session_rewind(ptr, at, &object), object)
	})
}

func positionOf(position int) (C.size_t, error) {
	if position < 0 {
		return 0, &Error{Code: ErrArgument, Message: fmt.Sprintf("position: expected 0 or more, found %d", position)}
	}
	return C.size_t(position), nil
}

// Logits copies the logits of a position: [Model.VocabSize] values.
func (s *Session) Logits(position int) ([]float32, error) {
	logits := make([]float32, s.vocabSize)
	return logits, s.CopyLogits(position, logits)
}

// CopyLogits copies the logits of a position into a slice of at least [Model.VocabSize] values.
func (s *Session) CopyLogits(position int, logits []float32) error {
	return s.look(position, func(ptr *C.proofinfer_session, at C.size_t) error {
		var needed C.size_t
		var object *C.proofinfer_error
		status := C.proofinfer_session_logits(ptr, at, (*C.float)(unsafe.SliceData(logits)), C.size_t(len(logits)), &needed, &object)
		return failure(status, object)
	})
}

// ViewLogits calls view with the logits of a position where they stand inside the session, without a copy. The slice is
// valid until view returns; it must be neither kept nor written to. Until then calls that would move the session fail with [ErrBusy], and a
// Close waits for the memory's last use.
func (s *Session) ViewLogits(position int, view func(logits []float32) error) error {
	return s.look(position, func(ptr *C.proofinfer_session, at C.size_t) error {
		var logits *C.float
		var count C.size_t
		var object *C.proofinfer_error
		if err := failure(C.proofinfer_session_logits_view(ptr, at, &logits, &count, &object), object); err != nil {
			return err
		}
		return view(unsafe.Slice((*float32)(logits), int(count)))
	})
}

// look runs a call that reads logits, which nothing may move meanwhile.
func (s *Session) look(position int, call func(*C.proofinfer_session, C.size_t) error) error {
	at, err := positionOf(position)
	if err != nil {
		return err
	}
	ptr, err := s.acquire()
	if err != nil {
		return err
	}
	defer s.h.release()
	if !s.moving.TryRLock() {
		return busy("session")
	}
	defer s.moving.RUnlock()
	return call(ptr, at)
}

// Position is the number of tokens appended.
func (s *Session) Position() (int, error) {
	ptr, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer s.h.release()
	return int(C.proofinfer_session_position(ptr)), nil
}

// MemoryBytes is all memory that the session holds.
func (s *Session) MemoryBytes() (uint64, error) {
	ptr, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer s.h.release()
	return uint64(C.proofinfer_session_memory_bytes(ptr)), nil
}

// Tokens copies the tokens appended so far.
func (s *Session) Tokens() ([]int32, error) {
	ptr, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer s.h.release()
	tokens := make([]int32, s.contextLength)
	p, capacity := ids(tokens)
	var needed C.size_t
	var object *C.proofinfer_error
	if err := failure(C.proofinfer_session_tokens(ptr, p, capacity, &needed, &object), object); err != nil {
		return nil, err
	}
	return tokens[:needed:needed], nil
}
